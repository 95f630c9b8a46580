// A thread that compiles grammars; started by grammar-preparer.ts, and ended when a grammar takes too long.
import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { assert, RuvLLMError, serializeError } from '../../core/errors.ts';
import { ENGINE_LIMITS } from '../../engine/constraints.ts';
import { type GrammarSource, recordGrammar } from '../../sampling/grammar/index.ts';
import type { PreparerAnswer } from './grammar-preparer.ts';

/** Maximum steps: 2 s of processor time at worst, a second for most grammars. */
const MAX_STEPS = 8_000_000;
/** The longest completion that samplers request. */
const MAX_CLOSING_BYTES = 65_536;

/** A grammar within these limits takes a few milliseconds in the engine. */
const QUICK = {
  textLength: 131_072,
  automataLength: 262_144,
  steps: 150_000,
  stretchSteps: 15_000,
  closingBytes: 2048,
} as const;

/** Below the threads that generate: an expensive grammar must not slow the streams of others. On Linux it is about this thread only. */
const NICENESS = 5;
if (process.platform === 'linux') setPriority(0, NICENESS);

const port = parentPort;
assert(port !== null, 'grammar-worker runs as a worker thread');

function prepare(text: string): PreparerAnswer {
  const { maxPreparedSteps, maxStretchSteps, maxBytes, maxStepsPerToken } = ENGINE_LIMITS;
  const source = JSON.parse(text) as GrammarSource;
  const recorded = recordGrammar(source, { maxSteps: MAX_STEPS, maxStepsPerToken });
  const { grammar, automata, numSteps, numStretchSteps } = recorded;
  if (numSteps > maxPreparedSteps) throw tooManySteps('compiling it', numSteps, maxPreparedSteps);
  if (numStretchSteps > maxStretchSteps) throw tooManySteps('one part of it', numStretchSteps, maxStretchSteps);
  const { sizeBytes = 0 } = grammar;
  if (sizeBytes > maxBytes) {
    throw new RuvLLMError('unsupported', `grammar: it takes ${sizeBytes} bytes, the limit is ${maxBytes}`, {
      data: { reason: 'memory', sizeBytes, limit: maxBytes },
    });
  }
  // The engine's first query: its cost must not fail there.
  grammar.beginToken();
  const closing = grammar.closing(grammar.start, MAX_CLOSING_BYTES);
  const isSlow =
    text.length > QUICK.textLength ||
    automata.length > QUICK.automataLength ||
    numSteps > QUICK.steps ||
    numStretchSteps > QUICK.stretchSteps ||
    (closing?.length ?? Infinity) > QUICK.closingBytes;
  return { automata, isSlow };
}

function tooManySteps(what: string, numSteps: number, limit: number): RuvLLMError {
  return new RuvLLMError(
    'unsupported',
    `grammar: ${what} takes ${numSteps} steps without the automata, the limit is ${limit}`,
    { data: { reason: 'steps', numSteps, limit } },
  );
}

port.on('message', (text: string) => {
  let answer: PreparerAnswer;
  try {
    answer = prepare(text);
  } catch (error) {
    answer = { error: serializeError(error) };
  }
  port.postMessage(answer);
});
port.postMessage('ready');
