// Grammars and schemas that cost much more than their size, beside a client that reads plain text. Each must be answered or refused,
// and the reader must not notice.
import { setTimeout as sleep } from 'node:timers/promises';
import { hostileGrammars } from '../../bench/support/hostile-grammars.ts';
import type { GrammarSource } from '../../src/sampling/grammar/index.ts';
import { HOSTILE_GRAMMARS } from '../../test/support/hostile-grammars.ts';
import { createClock, type Part, percentileOf, shorten } from '../part.ts';
import { ask } from '../support/client.ts';
import { startGapReader } from '../support/gap-reader.ts';
import { createSite, kill, readHealth } from '../support/site.ts';

const NUM_AT_ONCE = 4;
/** The stream alone, for the figures; a run of few rounds only looks at answers. */
const CONTROL_MS = { many: 4000, few: 200 };
const FEW_ROUNDS = 20;
const LIMIT_GAP_MS = 50;
/** Far beyond the two seconds of CPU time that a grammar may take: on a busy machine it waits for them. */
const ANSWER_LIMIT_MS = 30_000;

const STREAM = { model: 'm', prompt: 'Once upon a time', max_tokens: 200, temperature: 0, ignore_eos: true, stream: true }; // prettier-ignore

function fieldsOf(source: GrammarSource): object {
  if (source.type === 'gbnf') return { grammar: source.text };
  if (source.type === 'regex') return { regex: source.pattern };
  return { response_format: { type: 'json_schema', json_schema: { name: 'x', strict: true, schema: (source as { schema: unknown }).schema } } }; // prettier-ignore
}

export const hostile: Part = {
  name: 'hostile',
  summary: 'expensive grammars and schemas beside a stream',
  async run(options) {
    const cases: [string, GrammarSource][] = [
      ...Object.entries(HOSTILE_GRAMMARS).map(([name, create]): [string, GrammarSource] => [name, create()]),
      ...hostileGrammars(20).map((source, i): [string, GrammarSource] => [`large grammar ${i}`, source]),
    ];
    const clock = createClock(options, cases.length);
    const site = await createSite({ model: '15M', environment: { RUVLLM_KERNELS: '' }, args: () => ['--no-memory', '--threads', '1'] }); // prettier-ignore
    const problems: string[] = [];
    const verdicts = new Map<string, number>();
    const times: number[] = [];
    try {
      const server = await site.start();
      const bodies = cases.map(([name, source]) => ({ name, body: { model: 'm', messages: [{ role: 'user', content: 'a' }], max_tokens: 4, temperature: 0, ...fieldsOf(source) } })); // prettier-ignore
      const alone = await startGapReader(server.url, site.tokens.alice, STREAM);
      await sleep((options.maxRounds ?? Infinity) < FEW_ROUNDS ? CONTROL_MS.few : CONTROL_MS.many);
      const control = await alone.stop();
      const reader = await startGapReader(server.url, site.tokens.alice, STREAM);
      const attacker = async (): Promise<void> => {
        while (clock.next()) {
          const { name, body } = bodies[(clock.rounds - 1) % bodies.length]!;
          const began = performance.now();
          try {
            const { status, text } = await ask(server.url, '/v1/chat/completions', { token: site.tokens.bob, body, timeoutMs: ANSWER_LIMIT_MS }); // prettier-ignore
            verdicts.set(String(status), (verdicts.get(String(status)) ?? 0) + 1);
            if (status >= 500 && status !== 503) problems.push(`${name}: ${status} ${text.slice(0, 200)}`);
          } catch (error) {
            problems.push(`${name}: no answer (${(error as Error).message})`);
          }
          times.push(performance.now() - began);
        }
      };
      await Promise.all(Array.from({ length: NUM_AT_ONCE }, attacker));
      const beside = await reader.stop();
      const health = await readHealth(server.url);
      if (health?.status !== 200) problems.push(`health afterwards: ${JSON.stringify(health)}`);
      if (beside.numBroken > 0) problems.push(`${beside.numBroken} streams beside them were cut`);
      if (/MaxListenersExceededWarning/.test(site.errorOutput())) problems.push('MaxListenersExceededWarning');
      const longest = beside.gaps.at(-1) ?? Infinity;
      const slowness: string[] = [];
      if (longest > LIMIT_GAP_MS)
        slowness.push(`the longest gap of a stream was ${longest.toFixed(0)} ms (alone ${control.gaps.at(-1)?.toFixed(0)} ms)`); // prettier-ignore
      await kill(server);
      return {
        figures: {
          hostile_requests: clock.rounds,
          hostile_max_gap_ms: Math.round(longest),
          hostile_p999_gap_ms: percentileOf(beside.gaps, 0.999),
          hostile_median_gap_ms: percentileOf(beside.gaps, 0.5),
          control_max_gap_ms: Math.round(control.gaps.at(-1) ?? 0),
          tokens_beside: beside.gaps.length,
          answer_max_ms: Math.round(Math.max(...times)),
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
