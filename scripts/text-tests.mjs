/** Tests of texts, which `npm run lint:docs` runs: wording, links, figures, generated pages, screens, files to deploy, expressions. */
export const TEXT_TESTS = [
  'test/cli-screens.test.ts',
  'test/deploy-examples.test.ts',
  'test/docs-api.test.ts',
  'test/docs-benchmarks.test.ts',
  'test/docs-site.test.ts',
  'test/docs.test.ts',
  'test/expressions.test.ts',
  'test/walks.test.ts',
  'test/wording.test.ts',
];
