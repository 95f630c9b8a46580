import { expect, test } from 'vitest';
import { createTestServices, createTestStore } from '../../memory/test-store.contract.ts';
import { createFloatBlobs } from '../versions/blobs.ts';
import { ewcSummary, getLearnedAdapter, type LearnedAdapter, putLearnedAdapter } from './learned-adapter.ts';

const services = createTestServices();
const blobs = createFloatBlobs(createTestStore(services), services);
const task = { anchor: Float32Array.of(1, 2), fisher: Float32Array.of(3, 4) };
const adapter = {
  parameters: Float32Array.of(5, 6),
  rank: 4,
  numLayers: 2,
  ewc: {
    lambda: 1800,
    tasks: [task],
    fisher: Float32Array.of(7, 8),
    boundariesMs: [123],
    stream: {
      space: 'test-3',
      count: 2,
      squares: 0.5,
      products: 0.25,
      center: Float32Array.of(1, 0, 0),
      recent: [
        { embedding: Float32Array.of(0, 1, 0), atMs: 11 },
        { embedding: Float32Array.of(0, 0, 1), atMs: 12 },
      ],
    },
  },
};

test.each<[string, LearnedAdapter['ewc']['stream']]>([
  ['a stream', adapter.ewc.stream],
  ['a stream that just began', { ...adapter.ewc.stream, count: 0, center: new Float32Array() }],
  ['no stream', null],
])('[LB15] an adapter with %s is read as it was written', async (_name, stream) => {
  const written = { ...adapter, ewc: { ...adapter.ewc, stream } };
  const version = await putLearnedAdapter(blobs, 'acme', { ...written, lessons: 'hash' });
  expect(await getLearnedAdapter(blobs, 'acme', version)).toEqual(written);
  expect(ewcSummary(version)).toEqual({ lambda: 1800, numTasks: 1, boundariesMs: [123] });
});

test('[LB15] in a version that made a task of every run the last one is the current task', async () => {
  const put = (values: Float32Array): Promise<string> => blobs.put('acme', values);
  const version = {
    blobs: {
      parameters: await put(adapter.parameters),
      anchor0: await put(task.anchor),
      fisher0: await put(task.fisher),
      anchor1: await put(adapter.parameters),
      fisher1: await put(adapter.ewc.fisher),
    },
    contents: { rank: 4, numLayers: 2, lambda: 1620, taskLambdas: [2000, 1800], lessons: 'hash' },
  };
  const { ewc } = await getLearnedAdapter(blobs, 'acme', version);
  expect(ewc).toEqual({ lambda: 1620, tasks: [task], fisher: adapter.ewc.fisher, boundariesMs: [], stream: null });
});
