import { readFileSync } from 'node:fs';
import type { Answer, LoadRequest, Memory, Request } from './contestant.ts';
import { median } from './report.ts';

/** The operations an engine needs to participate. */
export interface BenchEngine {
  load(request: LoadRequest): Promise<{ vocabSize: number }>;
  /** Clears the first sequences; not part of any time. */
  clear(numSequences: number): Promise<void>;
  /** Computes a prompt. */
  prefill(prompt: number[]): Promise<void>;
  /** Continues all prompts concurrently, greedy and without stopping at an end of text; calls back at each token. */
  generate(prompts: number[][], numTokens: number, onToken: (sequence: number) => void): Promise<void>;
}

type Work = Pick<Answer, 'ms' | 'numTokens'>;

/** The child's side of a contestant: the same code times both engines. */
export function serveEngine(engine: BenchEngine): void {
  let vocabSize = 0;
  let salt = 0;
  const freshPrompt = (count: number): number[] => freshTokens(count, vocabSize, salt++);

  async function work(request: Request): Promise<Work> {
    if (request.do === 'load') {
      const start = performance.now();
      ({ vocabSize } = await engine.load(request));
      return { ms: performance.now() - start, numTokens: 0 };
    }
    if (request.do === 'prefill') {
      await engine.clear(1);
      const prompt = freshPrompt(request.numTokens);
      const start = performance.now();
      await engine.prefill(prompt);
      return { ms: performance.now() - start, numTokens: request.numTokens };
    }
    if (request.do === 'decode') return decode(request);
    const times: number[] = [];
    for (let repeat = 0; repeat < request.repeats; repeat++) times.push(await timeFirstToken(request.numPrompt));
    return { ms: median(times), numTokens: 1 };
  }

  async function timeFirstToken(numPrompt: number): Promise<number> {
    await engine.clear(1);
    const prompt = freshPrompt(numPrompt);
    const start = performance.now();
    let end = NaN;
    await engine.generate([prompt], 1, () => (end = performance.now()));
    return end - start;
  }

  async function decode({ numSequences, numTokens, depth }: Request & { do: 'decode' }): Promise<Work> {
    await engine.clear(numSequences);
    const prompts = Array.from({ length: numSequences }, () => freshPrompt(depth));
    const arrivals: number[][] = prompts.map(() => []);
    await engine.generate(prompts, numTokens + 1, (sequence) => arrivals[sequence]!.push(performance.now()));
    for (const { length } of arrivals) {
      if (length !== numTokens + 1) throw new Error(`${length} tokens, expected ${numTokens + 1}`);
    }
    return timeTogether(arrivals);
  }

  process.on('message', (request: Request) => {
    work(request)
      .then((done): Answer => ({ ...done, memory: readMemory() }))
      .catch((error: unknown) => ({ error: String(error) }))
      .then((answer) => process.send!(answer));
  });
}

/** From the first token of the last sequence to the end of all, with the tokens in between. */
function timeTogether(arrivals: readonly (readonly number[])[]): Work {
  const from = Math.max(...arrivals.map((times) => times[0]!));
  const until = Math.max(...arrivals.map((times) => times.at(-1)!));
  return { ms: until - from, numTokens: arrivals.flat().filter((time) => time > from).length };
}

function readMemory(): Memory {
  const rssBytes = process.memoryUsage.rss();
  if (process.platform !== 'linux') return { rssBytes, anonymousBytes: null };
  const anonymous = /^RssAnon:\s*(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  return { rssBytes, anonymousBytes: anonymous === undefined ? null : Number(anonymous) * 1024 };
}

/** Prompts without a common prefix with earlier ones, so that no cache helps. */
function freshTokens(count: number, vocabSize: number, salt: number): number[] {
  return Array.from({ length: count }, (_, i) => 300 + ((i * 7919 + salt * 104729) % (vocabSize - 400)));
}
