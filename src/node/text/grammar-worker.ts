// A thread that compiles grammars of requests: started by grammar-preparer.ts, and ended by it when one takes too long.
import { parentPort } from 'node:worker_threads';
import { assert, RuvLLMError, serializeError } from '../../core/errors.ts';
import { ENGINE_LIMITS } from '../../engine/constraints.ts';
import { type GrammarSource, recordGrammar } from '../../sampling/grammar/index.ts';
import type { PreparerAnswer } from './grammar-preparer.ts';

/** Steps with building automata, about a third of a second; formats such as date-time take two thirds of them. */
const MAX_STEPS = 3_000_000;
/** The longest completion that samplers ask for. */
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
      `grammar: compiling it takes ${numSteps} steps without the automata, at most ${maxPreparedSteps} are allowed`,
      { data: { reason: 'steps', numSteps, limit: maxPreparedSteps } },
    );
  }
  // The first thing that is asked of it; it must not fail for its cost in the engine.
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
