type Environment = Readonly<Record<string, string | undefined>>;

/** The size of a test that repeats itself: `short` in `npm test`, `long` in `npm run test:long`. */
export function campaign<T>(sizes: { readonly short: T; readonly long: T }, environment: Environment = process.env): T {
  const size = environment['RUVLLM_TEST_SIZE'] ?? 'short';
  // A misspelt size would run the short form and report it as the long one.
  if (size !== 'short' && size !== 'long') throw new Error(`RUVLLM_TEST_SIZE is "${size}"; use "short" or "long".`);
  return sizes[size];
}

/** The one case to repeat, as its failure named it: `RUVLLM_TEST_CASE=69`. Null: all cases of the campaign run. */
export function repeatedCase(environment: Environment = process.env): number | null {
  const text = environment['RUVLLM_TEST_CASE'] ?? '';
  if (text === '') return null;
  if (!/^\d+$/.test(text)) throw new Error(`RUVLLM_TEST_CASE is "${text}"; use the number of a case.`);
  return Number(text);
}
