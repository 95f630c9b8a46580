// Documents that a careless parser never ends, beside a client that reads a stream and another one that adds a document of its own.
import { setTimeout as sleep } from 'node:timers/promises';
import { HOSTILE_DOCUMENTS } from '../../test/support/hostile-documents.ts';
import { makePdf } from '../../test/support/make-pdf.ts';
import { createClock, type Part, percentileOf, shorten } from '../part.ts';
import { ask } from '../support/client.ts';
import { startGapReader } from '../support/gap-reader.ts';
import { createSite, kill, readHealth } from '../support/site.ts';

const CHARS = 64 << 10;
const NUM_AT_ONCE = 8;
const CONTROL_MS = 3000;
const LIMIT_GAP_MS = 50;
const ANSWER_LIMIT_MS = 120_000;
/** What clients really send, and types that do not fit the name. */
const TYPES = [
  'text/plain',
  'text/html; charset=utf-8',
  'text/markdown',
  'TEXT/HTML',
  'text/x-code',
  'application/octet-stream',
  '',
];
const STREAM = {
  model: 'm',
  prompt: 'Once upon a time',
  max_tokens: 200,
  temperature: 0,
  ignore_eos: true,
  stream: true,
};

interface Attack {
  readonly name: string;
  readonly type: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Every document with its own type, then with the others. */
function listAttacks(): Attack[] {
  const encoder = new TextEncoder();
  const texts = Object.entries(HOSTILE_DOCUMENTS).map(([name, write]) => ({
    name,
    bytes: encoder.encode(write(CHARS)),
  }));
  const pages = Array.from({ length: 40 }, () => Array.from({ length: 40 }, (_, i) => ({ text: 'a b', size: 8 + i })));
  const pdf = { name: 'letters of many sizes.pdf', bytes: new Uint8Array(makePdf(pages)) };
  return ['', ...TYPES].flatMap((type) => [...texts, pdf].map((file) => ({ ...file, type })));
}

export const documents: Part = {
  name: 'documents',
  summary: 'hostile documents of every kind beside a stream',
  async run(options) {
    const attacks = listAttacks();
    const clock = createClock(options, attacks.length);
    const site = await createSite({
      model: '15M',
      environment: { RUVLLM_KERNELS: '' },
      args: () => ['--threads', '1', '--requests-per-minute', '1000000'],
    });
    const problems: string[] = [];
    const verdicts = new Map<string, number>();
    const [times, modestTimes]: [number[], number[]] = [[], []];
    try {
      const server = await site.start();
      const post = async (token: string, { name, type, bytes }: Attack): Promise<number> => {
        const path = `/admin/memory/documents?name=${encodeURIComponent(name)}`;
        const began = performance.now();
        const headers = type === '' ? {} : { 'content-type': type };
        const { status, text } = await ask(server.url, path, { token, bytes, headers, timeoutMs: ANSWER_LIMIT_MS });
        verdicts.set(String(status), (verdicts.get(String(status)) ?? 0) + 1);
        if (status >= 500 && status !== 503) problems.push(`${name} as ${type}: ${status} ${text.slice(0, 200)}`);
        return performance.now() - began;
      };
      const alone = await startGapReader(server.url, site.tokens.alice, STREAM);
      await sleep(CONTROL_MS);
      const control = await alone.stop();
      const reader = await startGapReader(server.url, site.tokens.alice, STREAM);
      const over = new AbortController();
      const attacker = async (): Promise<void> => {
        while (clock.next()) {
          const attack = attacks[(clock.rounds - 1) % attacks.length]!;
          try {
            times.push(await post(site.tokens.bob, attack));
          } catch (error) {
            problems.push(`${attack.name} as ${attack.type}: no answer (${(error as Error).message})`);
          }
        }
      };
      const modest = async (): Promise<void> => {
        for (let number = 0; !over.signal.aborted; number++) {
          const bytes = new TextEncoder().encode(`# Note ${number}\n\nThe meeting is at ${number} o'clock.`);
          modestTimes.push(await post(site.tokens.alice, { name: 'note.md', type: 'text/markdown', bytes }));
          await sleep(200);
        }
      };
      const beside = modest();
      await Promise.all(Array.from({ length: NUM_AT_ONCE }, attacker));
      over.abort();
      await beside;
      const stream = await reader.stop();
      const health = await readHealth(server.url);
      if (health?.status !== 200) problems.push(`health afterwards: ${JSON.stringify(health)}`);
      if (stream.numBroken > 0) problems.push(`${stream.numBroken} streams beside them were cut`);
      const longest = stream.gaps.at(-1) ?? Infinity;
      const slowness =
        longest <= LIMIT_GAP_MS
          ? []
          : [`the longest gap of a stream was ${longest.toFixed(0)} ms (alone ${control.gaps.at(-1)?.toFixed(0)} ms)`];
      await kill(server);
      return {
        figures: {
          documents: clock.rounds,
          documents_gap_ms: Math.round(longest),
          documents_p999_gap_ms: percentileOf(stream.gaps, 0.999),
          documents_control_gap_ms: Math.round(control.gaps.at(-1) ?? 0),
          document_max_ms: Math.round(Math.max(...times)),
          modest_document_max_ms: Math.round(Math.max(...modestTimes)),
          verdicts: JSON.stringify(Object.fromEntries(verdicts)),
        },
        problems: shorten(problems),
        slowness,
      };
    } finally {
      site.dispose();
    }
  },
};
