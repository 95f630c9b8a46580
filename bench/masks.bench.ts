// Token masks of grammars: time per token over realistic documents, compile time, and the share of the JSON Schema
// suite's enforceable schemas that compile; support/masks.ts defines both. Vocabularies and suite of ../shared, or the
// GGUF files on the command line.
import { acceptedShare, listVocabularies, measureMasks } from './support/masks.ts';
import { percentile, printTable } from './support/report.ts';
import { readVocabulary } from './support/vocabularies.ts';

const paths = process.argv.slice(2);
const vocabularies = paths.length > 0 ? paths.map(readVocabulary) : listVocabularies();
if (vocabularies.length === 0) {
  console.error('no vocabularies in ../shared\nnext: npm run bench -- masks FILE.gguf …');
  process.exit(2);
}
const results = vocabularies.map(measureMasks).sort((a, b) => a.size - b.size);
printTable([
  ['', 'tokens', 'masks', 'mask p50 ms', 'p90', 'p99', 'most', 'compile p50 ms', 'slowest'],
  ...results.map(({ name, size, maskMs, compileMs, slowest }) => [
    name,
    String(size),
    String(maskMs.length),
    ...[0.5, 0.9, 0.99, 1].map((q) => percentile(maskMs, q).toFixed(3)),
    percentile(compileMs, 0.5).toFixed(2),
    slowest,
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
    mask_max_ms: percentile(largest.maskMs, 1),
    free_text_mask_p50_ms: percentile(largest.freeMs, 0.5),
    free_text_mask_max_ms: percentile(largest.freeMs, 1),
    call_mask_p50_ms: percentile(largest.callMs, 0.5),
    compile_p50_ms: percentile(largest.compileMs, 0.5),
    schemas_accepted_share: acceptedShare(),
  }),
);
