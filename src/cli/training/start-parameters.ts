import { RuvLLMError } from '../../core/errors.ts';
import { readShape } from '../../models/shape.ts';
import { readAdapter } from '../../node/read-adapter.ts';
import { openModelFile } from '../../platform/node/files/open-model-file.ts';
import type { Trainer } from '../../node/training/open-trainer.ts';

/** The parameters of an adapter file, to train on from it; rank and layers must be those of the run. */
export async function readStart(path: string, { plan, work }: Trainer): Promise<Float32Array> {
  const gguf = openModelFile(plan.path);
  let adapter;
  try {
    adapter = await readAdapter(path, readShape(gguf));
  } finally {
    gguf.source.close();
  }
  const numParameters = await work.layoutSize(plan);
  const expected = await work.factorsOf(plan, new Float32Array(numParameters));
  const describe = (factors: readonly { target: string; layer: number; rank: number }[]): string =>
    factors.map(({ target, layer, rank }) => `${target} ${layer} ${rank}`).join(', ');
  if (describe(adapter.factors) !== describe(expected)) {
    const ranks = [...new Set(adapter.factors.map(({ rank }) => rank))].join(', ');
    throw new RuvLLMError(
      'invalid_option',
      `${path} has ${adapter.factors.length} matrices of rank ${ranks}; this run trains ${expected.length} of rank ${plan.rank}. Use the same --rank and --layers`,
      { data: { option: '--from', numMatrices: adapter.factors.length, numExpected: expected.length } },
    );
  }
  const parameters = new Float32Array(numParameters);
  let at = 0;
  for (const [i, { a, b, scale }] of adapter.factors.entries()) {
    parameters.set(a, at);
    // The run has its own scale: the product must stay the same.
    const share = scale / expected[i]!.scale;
    parameters.set(share === 1 ? b : b.map((value) => value * share), at + a.length);
    at += a.length + b.length;
  }
  return parameters;
}
