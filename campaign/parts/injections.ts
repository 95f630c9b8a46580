// Texts that give orders, in every place of a prompt where stored texts, results of tools and names stand: none may change the control
// tokens, the words around it, the tools on offer or whose data is read. Whether a model believes them, nobody can promise.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRandom } from '../../src/core/random.ts';
import { createClock, type Part, shorten } from '../part.ts';
import { listInjections } from '../support/injections.ts';
import { DOORS, openDoor } from '../support/prompt-doors.ts';
import {
  BUILTINS,
  createTextSide,
  openPlace,
  type PlaceCheck,
  PLACES,
  VOCABULARIES,
} from '../support/prompt-places.ts';

const SUITE = fileURLToPath(
  new URL('../../../shared/suites/chat-templates', import.meta.url.replace('/.cache/tools/', '/')),
);
const DEFAULT_ROUNDS = 40_000;
/** Rounds with one template, because to open one takes as long as many of them. */
const ROUNDS_OF_TEMPLATE = 250;
/** Of the rounds, one goes through a server: it takes fifty times as long. */
const ROUNDS_OF_DOOR = 40;

type Template = { readonly name: string } & ({ readonly source: string } | { readonly builtin: string });

function listTemplates(): Template[] {
  const builtins = BUILTINS.map((name) => ({ name, builtin: name }));
  if (!existsSync(SUITE)) {
    console.log('injections: only the built-in templates, there is no ../shared/suites/chat-templates');
    return builtins;
  }
  const files = readdirSync(SUITE).filter((name) => name.endsWith('.jinja'));
  return [...builtins, ...files.map((name) => ({ name, source: readFileSync(join(SUITE, name), 'utf8') }))];
}

/** The places that one template shows, in one vocabulary. */
function openPlaces(
  template: Template,
  vocabulary: (typeof VOCABULARIES)[number],
): { name: string; check: PlaceCheck }[] {
  const side = createTextSide(template, vocabulary);
  const source = 'source' in template ? template.source : '';
  return Object.keys(PLACES).flatMap((name) => {
    const check = openPlace(side, source, name);
    return check === null ? [] : [{ name, check }];
  });
}

export const injections: Part = {
  name: 'injections',
  summary: 'texts that give orders, in every place of a prompt',
  async run(options) {
    const random = createRandom(options.seed);
    const shuffle = <T>(values: readonly T[]): T[] =>
      values
        .map((value) => ({ value, key: random.next() }))
        .toSorted((a, b) => a.key - b.key)
        .map(({ value }) => value);
    const texts = shuffle(listInjections());
    const clock = createClock(options, DEFAULT_ROUNDS);
    const sides = shuffle(
      listTemplates().flatMap((template) => VOCABULARIES.map((vocabulary) => ({ template, vocabulary }))),
    );
    const doors = await Promise.all(
      shuffle(Object.keys(DOORS)).map(async (name) => ({ name, check: await openDoor(name) })),
    );
    const problems: string[] = [];
    let numTried = 0;
    let numObeyed = 0;
    let numOverHttp = 0;
    const judge = (where: string, text: string, verdict: string | null): void => {
      numTried++;
      if (verdict === null) return;
      numObeyed++;
      problems.push(`${where}: ${verdict}: ${JSON.stringify(text).slice(0, 120)}`);
    };
    for (let opened = 0; ; opened++) {
      const { template, vocabulary } = sides[opened % sides.length]!;
      const places = openPlaces(template, vocabulary);
      let isOver = false;
      for (let i = 0; i < ROUNDS_OF_TEMPLATE && !(isOver = !clock.next()); i++) {
        const text = texts[numTried % texts.length]!.text;
        if (clock.rounds % ROUNDS_OF_DOOR === 0) {
          const { name, check } = doors[numOverHttp++ % doors.length]!;
          judge(`over HTTP, ${name}`, text, await check(text));
        } else {
          const { name, check } = places[Math.floor(random.next() * places.length)]!;
          judge(`${template.name}, vocabulary ${vocabulary}, ${name}`, text, check(text));
        }
      }
      if (isOver) break;
    }
    return {
      figures: {
        injections_tried: numTried,
        injections_obeyed: numObeyed,
        over_http: numOverHttp,
        texts: texts.length,
        prompts: sides.length,
        places: Object.keys(PLACES).length + doors.length,
      },
      problems: shorten(problems),
    };
  },
};
