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

/** Below the threads that generate: an expensive grammar must not slow the streams of others. On Linux it is about this thread only. */
const NICENESS = 5;
if (process.platform === 'linux') setPriority(0, NICENESS);

const port = parentPort;
assert(port !== null, 'grammar-worker runs as a worker thread');

function prepare(text: string): Int32Array {
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
  grammar.closing(grammar.start, MAX_CLOSING_BYTES);
  return automata;
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
    answer = { automata: prepare(text) };
  } catch (error) {
    answer = { error: serializeError(error) };
  }
  port.postMessage(answer);
});
port.postMessage('ready');
