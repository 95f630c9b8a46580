// How much more quality a router gets at equal cost than a random mixture of the same models.
import type { RouteEncoder, RouteExample } from '../../../src/learning/router/index.ts';
import { importBuilt } from '../dist.ts';
import { encodeForBench } from './routers/bench-input.ts';
import type { ModelOutcomes } from './routing-data.ts';

const router = await importBuilt<typeof import('../../../src/learning/router/index.ts')>('learning/router/index');

/** As in the routers that serve requests. */
export const SERVED = { numBuckets: 2048 } as const;
export const { FREE, candidatesOf, prepareArea, shuffleOutcomes } = await importBuilt<typeof import('../../../src/learning/evaluation/held-out-area.ts')>('learning/evaluation/held-out-area'); // prettier-ignore

/** Fitted only to the training texts and their sentence vectors, if they have some. */
export function encodeAll(train: readonly ModelOutcomes[], test: readonly ModelOutcomes[]) {
  const requestOf = ({ text, vector }: ModelOutcomes) => ({ turns: [text], ...(vector && { vector }) });
  const encoder: RouteEncoder = router.fitRouteEncoder(train.map(requestOf), {
    ...SERVED,
    vector: train[0]?.vector?.length ?? 0,
  });
  const encode = (one: ModelOutcomes): RouteExample => ({
    input: encodeForBench(encoder, requestOf(one)),
    outcomes: Float32Array.from(one.outcomes),
    group: one.group,
  });
  return { encoder, train: train.map(encode), test: test.map(encode) };
}
