import { expect, test } from 'vitest';
import { buildRandomModel, type RandomArchitecture } from '../../test/support/random-model.ts';
import { testLimits } from '../../test/support/run-model.ts';
import { createMemorySource } from '../core/byte-source.ts';
import { openGguf } from '../gguf/index.ts';
import { createReferencePackFactory } from '../kernels/reference/reference-pack.ts';
import { planModel } from './plan-model.ts';

test.each<[RandomArchitecture, string, number, RegExp]>([
  ['granitehybrid', 'ssm.state_size', 2 ** 31, /ssm\.state_size" is 2147483648, must be from 1 to 1048576/],
  ['falcon-h1', 'ssm.state_size', 2 ** 31, /ssm\.state_size" is 2147483648, must be from 1 to 1048576/],
  ['granitehybrid', 'ssm.inner_size', 2 ** 31, /ssm\.inner_size" is 2147483648, must be from 1 to 1048576/],
  ['granitehybrid', 'ssm.time_step_rank', 2 ** 20, /ssm\.time_step_rank" is 1048576, must be from 1 to 4096/],
  [
    'granitehybrid',
    'ssm.state_size',
    2 ** 20,
    /blk\.0\.ssm_in\.weight has shape \[96, 424\], the model requires \[96, 2097544\]/,
  ],
  ['granitehybrid', 'ssm.state_size', 17, /192 values in 8 heads and 1 groups with states of 17 do not divide evenly/],
  ['lfm2', 'shortconv.l_cache', 2 ** 31, /shortconv\.l_cache" is 2147483648, must be from 1 to /],
])('%s: rejects %s of %d', (architecture, name, value, message) => {
  const metadata = [{ key: `${architecture}.${name}`, type: 'u32', value } as const];
  const bytes = buildRandomModel({ architecture, type: 'F32', seed: 1, shape: { numLayers: 2 }, metadata });
  expect(() => planModel(openGguf(createMemorySource(bytes)), createReferencePackFactory(), testLimits)).toThrowError(
    expect.objectContaining({ code: 'invalid_model_file', message: expect.stringMatching(message) }),
  );
});
