// Time per token mask over realistic documents, and the schemas of the JSON Schema suite that compile.
//
// `schemas_accepted_share` counts the schemas of drafts 7 and 2020-12 that can be enforced: those with a valid instance
// that refer to no other document. Mask times are processor time, because other processes may use the machine: per place
// of a document the median of several rounds, each with a newly compiled grammar whose masks are not cached.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { acceptedShareOf } from '../../test/support/schema-suite.ts';
import { importBuilt } from './dist.ts';
import { ANSWER, CALLS, JSON_CASES, type MaskCase, PROSE, TEXT_CASES } from './mask-cases.ts';
import { median, percentile } from './report.ts';
import { combineVocabularies, type NamedVocabulary, readVocabulary } from './vocabularies.ts';

const { compileGrammar, createTokenMatcher, createTokenTable, spellBytes } =
  await importBuilt<typeof import('../../src/sampling/grammar/index.ts')>('sampling/grammar/index');

const ROUNDS = 5;
const VOCABULARIES = '../shared/suites/tokenizers';
export const SCHEMA_SUITE = '../shared/suites/json-schema-test-suite/tests';
/** As large as those of current multilingual models. */
const COMBINED_SIZE = 151_936;

/** Results of one vocabulary; times ascending. */
export interface MaskTimes {
  readonly name: string;
  readonly size: number;
  readonly maskMs: readonly number[];
  readonly compileMs: readonly number[];
  readonly freeMs: readonly number[];
  readonly callMs: readonly number[];
  /** The case of the slowest mask. */
  readonly slowest: string;
}

function cpuMs(run: () => void): number {
  const before = process.cpuUsage();
  const start = performance.now();
  run();
  const wallMs = performance.now() - start;
  const { user, system } = process.cpuUsage(before);
  return Math.min(wallMs, (user + system) / 1000);
}

/** Times masks and compilations with a vocabulary. */
export function measureMasks({ name, vocabulary }: NamedVocabulary): MaskTimes {
  const table = createTokenTable(vocabulary);
  const compileMs: number[] = [];

  function measure({ name: caseName, source, text }: MaskCase): { ms: number; at: number }[] {
    const ids = spellBytes(table, Buffer.from(text))!;
    const times = ids.map((): number[] => []);
    // The first round warms up the JavaScript compiler.
    for (let round = 0; round <= ROUNDS; round++) {
      let grammar!: ReturnType<typeof compileGrammar>;
      const ms = cpuMs(() => (grammar = compileGrammar(source)));
      if (round > 0) compileMs.push(ms);
      const matcher = createTokenMatcher(grammar, table);
      for (const [i, id] of ids.entries()) {
        const maskMs = cpuMs(() => void matcher.mask());
        if (round > 0) times[i]!.push(maskMs);
        if (!matcher.accept(id)) throw new Error(`${caseName}: token ${i} of ${text} rejected`);
      }
    }
    let at = 0;
    return ids.map((id, i) => ({ ms: median(times[i]!), at: (at += vocabulary.bytes(id).length) }));
  }

  const masks = [...JSON_CASES, ...TEXT_CASES].flatMap((one) =>
    measure(one).map(({ ms, at }) => ({
      ms,
      place: `${one.name} at ${JSON.stringify(one.text.slice(0, at).slice(-20))}`,
    })),
  );
  masks.sort((a, b) => a.ms - b.ms);
  const calls = measure({ name: 'calls', source: CALLS, text: ANSWER });
  const sorted = (list: readonly { ms: number }[]): number[] => list.map(({ ms }) => ms).sort((a, b) => a - b);
  return {
    name,
    size: vocabulary.size,
    maskMs: sorted(masks),
    compileMs: compileMs.sort((a, b) => a - b),
    freeMs: sorted(calls.filter(({ at }) => at <= PROSE.length)),
    callMs: sorted(calls.filter(({ at }) => at > PROSE.length)),
    slowest: masks.at(-1)!.place,
  };
}

/** The vocabularies of llama.cpp, and one of all their tokens and more; empty if they are missing. */
export function listVocabularies(): NamedVocabulary[] {
  if (!existsSync(VOCABULARIES)) return [];
  const files = readdirSync(VOCABULARIES).filter((file) => file.endsWith('.gguf'));
  const parts = files.map((file) => readVocabulary(join(VOCABULARIES, file)));
  const generative = parts.filter(({ name }) => !name.includes('bert'));
  return [...generative, combineVocabularies(parts, COMBINED_SIZE)];
}

/** The share of the enforceable schemas of the JSON Schema suite that compile; null if it is missing. */
export function acceptedShare(): number | null {
  return acceptedShareOf(SCHEMA_SUITE, (schema) => void compileGrammar({ type: 'json_schema', schema }));
}

/** The figures of structured output with the largest vocabulary; null where its data is missing. */
export function measureStructuredOutput(): {
  readonly schemas_accepted_share: number | null;
  readonly mask_p99_ms: number | null;
  readonly mask_max_ms: number | null;
} {
  const largest = listVocabularies().at(-1);
  const times = largest === undefined ? null : measureMasks(largest);
  const all = times === null ? [] : [...times.maskMs, ...times.freeMs, ...times.callMs].sort((a, b) => a - b);
  return {
    schemas_accepted_share: acceptedShare(),
    mask_p99_ms: all.length === 0 ? null : percentile(all, 0.99),
    mask_max_ms: all.at(-1) ?? null,
  };
}
