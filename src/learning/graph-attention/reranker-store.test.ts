import { beforeEach, describe, expect, test } from 'vitest';
import { createTestServices, createTestStore, recordsOf, type TestStore } from '../../memory/test-store.contract.ts';
import { createFloatBlobs } from '../versions/blobs.ts';
import { createVersionLog, type VersionLog } from '../versions/version-log.ts';
import { DIM, linkedExample, randomParameters, range } from './fixtures.contract.ts';
import { NUM_PARAMETERS } from './parameters.ts';
import { checkRerankerState, createReranker, untrainedState } from './reranker.ts';
import { createRerankerStore, RERANKER_LINE, type NewReranker, type RerankerStore } from './reranker-store.ts';
import { selectReranker } from './select.ts';
import type { RerankerState } from './types.ts';

const T = 'acme';
const SPACE = 'static-1-abc';
const state: RerankerState = { ...untrainedState(DIM, 5), parameters: randomParameters(3) };
const figures = selectReranker(createReranker(state), { heldOut: range(1, 25).map((seed) => linkedExample(seed)) }); // prettier-ignore
const made = (given: RerankerState, isSelected: boolean): NewReranker => ({
  state: given,
  space: SPACE,
  selection: { ...figures, next: isSelected ? 'trained' : 'unchanged' },
  loop: 'background',
  learnedFrom: ['r1'],
});
let store: TestStore;
let log: VersionLog;
let kept: RerankerStore;
const open = (): RerankerStore => createRerankerStore(log, createFloatBlobs(store, createTestServices()));
beforeEach(() => {
  const services = createTestServices();
  store = createTestStore(services);
  log = createVersionLog(store, services);
  kept = open();
});

describe('[GA6] versions of re-rankers', () => {
  test('a selected one is active, also after a restart, to the bit', async () => {
    const version = await kept.add(T, made(state, true));
    expect(version).toMatchObject({ line: 'reranker/main', version: 1, isAccepted: true, learnedFrom: ['r1'] });
    expect(version.metrics).toMatchObject({ num_queries: 25, ndcg_trained: figures.trained.ndcg });
    const found = (await open().active(T))!;
    expect(found.reranker.state).toEqual(state);
  });

  test('a refused one is recorded without weights and not active', async () => {
    const { version } = await kept.add(T, made(state, false));
    expect(await kept.active(T)).toBeNull();
    expect((await recordsOf(store)).length).toBe(2); // version and line
    expect(await log.history(T, RERANKER_LINE)).toMatchObject([{ isAccepted: false, blobs: {} }]);
    await expect(kept.read(T, await log.get(T, RERANKER_LINE, version))).rejects.toThrow('no weights');
  });

  test('a return to similarity is a version without weights', async () => {
    await kept.add(T, made(state, true));
    const back = { ...made(state, true), selection: { ...figures, next: 'similarity' as const } };
    expect(await kept.add(T, back)).toMatchObject({ version: 2, isAccepted: true, blobs: {} });
    expect(await kept.active(T)).toBeNull();
    await log.rollback(T, RERANKER_LINE, 1);
    expect((await kept.active(T))!.reranker.state).toEqual(state);
  });

  test('writes weights first: a crash in between leaves the old one active', async () => {
    await kept.add(T, made(state, true));
    store.onCall = (operation, argument) => {
      if (operation === 'put' && JSON.stringify(argument).includes(RERANKER_LINE)) throw new Error('killed');
    };
    await expect(kept.add(T, made({ ...state, parameters: randomParameters(4) }, true))).rejects.toThrow('killed');
    expect((await open().active(T))!.reranker.state).toEqual(state);
  });

  test.each([
    ['of another format', { format: 'linear' }, 'unsupported'],
    ['of a newer version', { version: 2 }, 'unsupported'],
    ['with too few weights', { parameters: new Float32Array(NUM_PARAMETERS - 1) }, 'invalid_option'],
    ['with a weight of no number', { parameters: new Float32Array(NUM_PARAMETERS).fill(NaN) }, 'invalid_option'],
    ['with a weight beyond all', { parameters: new Float32Array(NUM_PARAMETERS).fill(101) }, 'invalid_option'],
    [
      'with weights that are no floats',
      { parameters: Array.from({ length: NUM_PARAMETERS }, () => 0) },
      'invalid_option',
    ],
    ['for vectors of no length', { dim: 0 }, 'invalid_option'],
    ['for vectors of any length', { dim: 1e9 }, 'invalid_option'],
    ['without a seed', { seed: undefined }, 'invalid_option'],
  ])('refuses a state %s', (_name, changes, code) => {
    expect(() => checkRerankerState({ ...state, ...changes } as RerankerState)).toThrow(
      expect.objectContaining({ code }),
    );
  });
});
