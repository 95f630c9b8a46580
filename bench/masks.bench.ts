// Token masks of grammars: time per token over realistic documents, compile time, and the share of the JSON Schema
// suite that compiles. Vocabularies and suite of ../shared, or the GGUF files on the command line.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { acceptedShare, measureMasks } from './support/masks.ts';
import { percentile, printTable } from './support/report.ts';

const suites = '../shared/suites/tokenizers';
const schemaSuite = '../shared/suites/json-schema-test-suite/tests';

const paths = process.argv.slice(2);
const files =
  paths.length > 0
    ? paths
    : existsSync(suites)
      ? readdirSync(suites)
          .filter((name) => /(gpt-2|phi-3)\.gguf$/.test(name))
          .map((name) => join(suites, name))
      : [];
if (files.length === 0) {
  console.error(`no vocabularies in ${suites}\nnext: npm run bench -- masks FILE.gguf …`);
  process.exit(2);
}
const results = files.map(measureMasks).sort((a, b) => a.size - b.size);
printTable([
  ['', 'tokens', 'masks', 'mask p50 ms', 'p90', 'p99', 'compile p50 ms'],
  ...results.map(({ name, size, maskMs, compileMs }) => [
    name,
    String(size),
    String(maskMs.length),
    ...[0.5, 0.9, 0.99].map((q) => percentile(maskMs, q).toFixed(3)),
    percentile(compileMs, 0.5).toFixed(2),
  ]),
]);
printTable([
  ['calls in free text', 'free p50 ms', 'p90', 'most', 'call p50 ms', 'p90', 'most'],
  ...results.map(({ name, freeMs, callMs }) => [
    name,
    ...[freeMs, callMs].flatMap((list) => [0.5, 0.9, 1].map((q) => percentile(list, q).toFixed(3))),
  ]),
]);
const largest = results.at(-1)!;
console.log(
  JSON.stringify({
    bench: 'masks',
    vocabulary: largest.name,
    tokens: largest.size,
    mask_p50_ms: percentile(largest.maskMs, 0.5),
    mask_p99_ms: percentile(largest.maskMs, 0.99),
    free_text_mask_p50_ms: percentile(largest.freeMs, 0.5),
    free_text_mask_max_ms: percentile(largest.freeMs, 1),
    call_mask_p50_ms: percentile(largest.callMs, 0.5),
    compile_p50_ms: percentile(largest.compileMs, 0.5),
    schemas_accepted_share: acceptedShare(schemaSuite),
  }),
);
