import { expect, test } from 'vitest';
import {
  createToyModel,
  createToySampler,
  TOY_VOCAB,
  toyLogits,
  type ToyModelOptions,
} from '../../../test/support/toy-model.ts';
import { opened, TOY_SPEC, toyRequest } from '../../../test/support/toy-spec.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createRandom } from '../../core/random.ts';
import { createConstrainedSampler } from '../../sampling/constrained-sampler.ts';
import { resolveGenerateParams } from '../../sampling/generate-params.ts';
import type { GrammarSource } from '../../sampling/grammar/index.ts';
import { createConstraints, type VocabularyData } from '../constraints.ts';
import { createEngineServer } from '../engine-server.ts';
import type { GenerateRequest, ServerMessage } from '../protocol.ts';
import type { EngineEvent } from '../types.ts';
import { createGrammarSampler } from './grammar-sampler.ts';
import { createSamplerClient } from './sampler-client.ts';
import { createSamplerServer } from './sampler-server.ts';
import type { SamplerTask, SamplerThreadHandlers, SpawnSamplerThread } from './types.ts';

/** Letters, digits and punctuation from '(' on; the last token ends a text. */
const END = TOY_VOCAB - 1;
const VOCABULARY: VocabularyData = {
  bytes: Uint8Array.from({ length: END }, (_, id) => 40 + id),
  offsets: Int32Array.from({ length: END + 2 }, (_, id) => Math.min(id, END)),
  isControl: Uint8Array.from({ length: END + 1 }, (_, id) => Number(id === END)),
  endIds: [END],
};
/** Every letter doubles the readings of the text. */
const SUMS: GrammarSource = {
  type: 'gbnf',
  text: 'root ::= e\ne ::= t | t "+" e | t e\nt ::= "1" | "1" t | "(" e ")"',
};

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A thread without a thread: replies come in later turns, or when `release` is called. */
function createStubThread() {
  const tasks: SamplerTask[] = [];
  let handlers: SamplerThreadHandlers | null = null;
  let numStarts = 0;
  let isHeld = false;
  const held: (() => void)[] = [];
  const spawn: SpawnSamplerThread = (given) => {
    handlers = given;
    numStarts++;
    const server = createSamplerServer((answer) => {
      const reply = (): void => given.onAnswer(structuredClone(answer));
      if (isHeld) held.push(reply);
      else setImmediate(reply);
    });
    return {
      post(task) {
        tasks.push(task);
        const copy = structuredClone(task);
        setImmediate(() => server.handle(copy));
      },
      dispose: async () => {},
    };
  };
  return {
    spawn,
    tasks,
    hold: () => (isHeld = true),
    release() {
      isHeld = false;
      for (const reply of held.splice(0)) reply();
    },
    lose: (error: Error) => handlers!.onLoss(error),
    get numStarts() {
      return numStarts;
    },
  };
}

async function setUp({ limits = {}, beforeForward }: Pick<ToyModelOptions, 'limits' | 'beforeForward'> = {}) {
  const thread = createStubThread();
  const model = createToyModel({ limits, ...(beforeForward && { beforeForward }) });
  const posted: ServerMessage[] = [];
  const server = createEngineServer({
    post: (message) => posted.push(message),
    openModel: async () => opened(model),
    createSampler: (params) => createToySampler(params.seed!),
    now: () => performance.now(),
    yieldToMessages: nextTurn,
    samplers: { spawn: thread.spawn, sleep: nextTurn },
    onCrash(error) {
      throw error;
    },
  });
  server.handle({ type: 'load', spec: { ...TOY_SPEC, ...(limits.numPages === undefined ? {} : { maxContext: 64 }) } });
  server.handle({ type: 'vocabulary', vocabulary: VOCABULARY });
  await nextTurn();
  const eventsOf = (id: number): EngineEvent[] =>
    posted.flatMap((message) => (message.type === 'events' ? message.events.filter((event) => event.id === id) : []));
  const tokensOf = (id: number): number[] =>
    eventsOf(id).flatMap((event) => (event.type === 'token' ? [event.token.tokenId] : []));
  const until = async (isDone: () => boolean): Promise<void> => {
    for (let i = 0; i < 5000 && !isDone(); i++) await nextTurn();
    expect(isDone()).toBe(true);
  };
  const isOver = (id: number): boolean => eventsOf(id).some(({ type }) => type === 'finished' || type === 'failed');
  return { thread, server, model, eventsOf, tokensOf, until, isOver, posted };
}

function slowRequest(id: number, grammar: GrammarSource, seed = 1, maxTokens = 12): GenerateRequest {
  const request = toyRequest({ promptIds: [1, 2, 3], maxTokens, seed }, [END]);
  return { ...request, id, grammar: { type: 'slow', text: JSON.stringify(grammar) } };
}

/** The tokens that a sampler gives for the toy model, without an engine. */
function expectedTokens(grammar: GrammarSource, seed: number, maxTokens = 12): number[] {
  const constraints = createConstraints();
  constraints.setVocabulary(VOCABULARY);
  const { sampling, promptIds } = toyRequest({ promptIds: [1, 2, 3], maxTokens, seed });
  const matcher = constraints.open(grammar, null);
  const sampler = createConstrainedSampler(sampling, createRandom(seed), matcher, { maxTokens, endIds: [END] });
  const tokens: number[] = [];
  while (tokens.length < maxTokens) {
    const history = [...promptIds, ...tokens];
    const { tokenId } = sampler.sample(toyLogits(history), history);
    if (tokenId === END) break;
    tokens.push(tokenId);
  }
  return tokens;
}

test('[E45] a slow grammar gives the tokens of any other one', async () => {
  const { server, tokensOf, until, isOver, eventsOf } = await setUp();
  for (const seed of [1, 2, 3, 4]) {
    server.handle({ type: 'generate', request: slowRequest(seed, SUMS, seed) });
  }
  await until(() => [1, 2, 3, 4].every(isOver));
  for (const seed of [1, 2, 3, 4]) {
    expect(tokensOf(seed)).toEqual(expectedTokens(SUMS, seed));
    expect(eventsOf(seed).at(-1)!.type).toBe('finished');
  }
});

test('[E45] other sequences go on while a token is chosen, and it still comes', async () => {
  const { server, thread, tokensOf, until, isOver, posted } = await setUp();
  thread.hold();
  server.handle({ type: 'generate', request: slowRequest(1, SUMS) });
  await until(() => thread.tasks.some(({ type }) => type === 'sample'));
  server.handle({ type: 'generate', request: { ...toyRequest({ promptIds: [1], maxTokens: 30, seed: 2 }), id: 2 } });
  await until(() => isOver(2));
  expect([tokensOf(2).length, tokensOf(1).length]).toEqual([30, 0]);
  server.handle({ type: 'stats', callId: 1 });
  expect(posted.at(-1)).toMatchObject({ type: 'stats', stats: { numRunning: 1 } });
  thread.release();
  await until(() => isOver(1));
  expect(tokensOf(1)).toEqual(expectedTokens(SUMS, 1));
});

test('[E45] a sequence that loses its pages while its token is chosen continues with that token', async () => {
  const { server, thread, tokensOf, until, isOver, posted } = await setUp({ limits: { numPages: 4 } });
  thread.hold();
  server.handle({ type: 'generate', request: slowRequest(1, SUMS) });
  await until(() => thread.tasks.some(({ type }) => type === 'sample'));
  const urgent = {
    ...toyRequest({ promptIds: Array.from({ length: 40 }, (_, i) => i), maxTokens: 20, seed: 2 }),
    id: 2,
    priority: 5,
  };
  server.handle({ type: 'generate', request: urgent });
  await until(() => isOver(2));
  server.handle({ type: 'stats', callId: 1 });
  expect(posted.at(-1)).toMatchObject({ type: 'stats', stats: { numPreemptions: 1 } });
  // It was computed again in the meantime, and its token must not be chosen twice.
  for (let i = 0; i < 20; i++) await nextTurn();
  thread.release();
  await until(() => isOver(1));
  expect(tokensOf(1)).toEqual(expectedTokens(SUMS, 1));
  expect(thread.tasks.filter(({ type }) => type === 'sample')).toHaveLength(tokensOf(1).length + 1);
});

test('[E45] an abort closes the text in the thread; a late token changes nothing', async () => {
  const { server, thread, eventsOf, until } = await setUp();
  thread.hold();
  server.handle({ type: 'generate', request: slowRequest(1, SUMS) });
  await until(() => thread.tasks.some(({ type }) => type === 'sample'));
  server.handle({ type: 'abort', id: 1 });
  expect(thread.tasks.at(-1)).toEqual({ type: 'close', id: 0 });
  thread.release();
  for (let i = 0; i < 20; i++) await nextTurn();
  expect(eventsOf(1)).toEqual([]);
});

test('[E45] a lost thread fails its texts only, and the next text gets a new one', async () => {
  const { server, thread, eventsOf, until, isOver, tokensOf } = await setUp();
  thread.hold();
  server.handle({ type: 'generate', request: slowRequest(1, SUMS) });
  await until(() => thread.tasks.some(({ type }) => type === 'sample'));
  thread.lose(new RuvLLMError('unsupported', 'grammar: its tokens take more than 384 MB'));
  await until(() => isOver(1));
  expect(eventsOf(1)).toMatchObject([{ type: 'failed', error: { code: 'unsupported', message: /384 MB/ } }]);
  thread.release();
  server.handle({ type: 'generate', request: slowRequest(2, SUMS, 2) });
  await until(() => isOver(2));
  expect(tokensOf(2)).toEqual(expectedTokens(SUMS, 2));
  expect(thread.numStarts).toBe(2);
});

test('[E45] a grammar that cannot be enforced fails its request with the reason', async () => {
  const { server, eventsOf, until, isOver } = await setUp();
  const far: GrammarSource = { type: 'json_schema', schema: { type: 'string', minLength: 500 } };
  server.handle({ type: 'generate', request: slowRequest(1, far) });
  server.handle({ type: 'generate', request: slowRequest(2, { type: 'regex', pattern: '(' }) });
  await until(() => isOver(1) && isOver(2));
  expect(eventsOf(1)).toMatchObject([
    { type: 'failed', error: { code: 'invalid_option', data: { option: 'maxTokens' } } },
  ]);
  expect(eventsOf(2)).toMatchObject([{ type: 'failed', error: { code: 'invalid_option' } }]);
});

test('[E46] a text that becomes too slow in the engine goes on in the thread, with the same tokens', async () => {
  let numMoved = 0;
  for (let seed = 0; seed < 30; seed++) {
    const sampling = { ...resolveGenerateParams({ temperature: 1.5, topP: 0.9 }), seed };
    const text = { automata: null, sampling, promptIds: [1, 2], maxTokens: 10, stopIds: [END] };
    const constraints = createConstraints({ maxStepsPerToken: 2000 });
    constraints.setVocabulary(VOCABULARY);
    const thread = createStubThread();
    const client = createSamplerClient(thread.spawn);
    client.setVocabulary(VOCABULARY);
    const sampler = createGrammarSampler(
      { ...text, grammar: () => JSON.stringify(SUMS) },
      constraints.open(SUMS, null),
      client,
    );
    const whole = createConstraints();
    whole.setVocabulary(VOCABULARY);
    const plain = createConstrainedSampler(sampling, createRandom(seed), whole.open(SUMS, null), {
      maxTokens: 10,
      endIds: [END],
    });
    const history = [1, 2];
    for (let i = 0; i < 10; i++) {
      const logits = toyLogits(history);
      const expected = plain.sample(logits, history);
      expect(await sampler.sampleAside!(logits, history)).toEqual(expected);
      if (expected.tokenId === END) break;
      history.push(expected.tokenId);
    }
    const opened = thread.tasks.find((task) => task.type === 'open');
    if (opened?.type === 'open' && opened.text.generatedIds.length > 0) numMoved++;
    sampler.close!();
  }
  expect(numMoved).toBeGreaterThan(5);
});

test('[E28] a grammar that is compiled at once starts one loop, not two', async () => {
  // With two loops, one would begin a step during the other's.
  const { server, tokensOf, until, isOver } = await setUp({ beforeForward: nextTurn });
  const grammar: GrammarSource = { type: 'regex', pattern: '[0-9]{9}' };
  server.handle({ type: 'generate', request: { ...slowRequest(1, grammar), grammar } });
  await until(() => isOver(1));
  expect(tokensOf(1)).toHaveLength(9);
});
