// A thread that compiles grammars; started by grammar-preparer.ts, and ended when a grammar takes too long.
import { parentPort } from 'node:worker_threads';
import { assert, RuvLLMError, serializeError } from '../../core/errors.ts';
import { ENGINE_LIMITS } from '../../engine/constraints.ts';
import { type GrammarSource, recordGrammar } from '../../sampling/grammar/index.ts';
import type { PreparerAnswer } from './grammar-preparer.ts';

/** Maximum steps, about a third of a second; formats such as date-time take two thirds of them. */
const MAX_STEPS = 3_000_000;
/** The longest completion that samplers request. */
const MAX_CLOSING_BYTES = 65_536;

const port = parentPort;
assert(port !== null, 'grammar-worker runs as a worker thread');

function prepare(text: string): Int32Array {
  const { maxPreparedSteps, maxStepsPerToken } = ENGINE_LIMITS;
  const source = JSON.parse(text) as GrammarSource;
  const { grammar, automata, numSteps } = recordGrammar(source, { maxSteps: MAX_STEPS, maxStepsPerToken });
  if (numSteps > maxPreparedSteps) {
    throw new RuvLLMError(
      'unsupported',
      `grammar: compiling it takes ${numSteps} steps without the automata, the limit is ${maxPreparedSteps}`,
      { data: { reason: 'steps', numSteps, limit: maxPreparedSteps } },
    );
  }
  // The engine's first query: its cost must not fail there.
  grammar.beginToken();
  grammar.closing(grammar.start, MAX_CLOSING_BYTES);
  return automata;
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
