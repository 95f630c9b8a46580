// Shows an answer while it is generated, and stops another one. node examples/stream.mjs [MODEL]
import { loadModel } from 'ruvllm';
import { modelPath } from './default-model.mjs';

const model = await loadModel(modelPath);

for await (const chunk of model.generateStream('Once upon a time', { maxTokens: 60, seed: 1 })) {
  process.stdout.write(chunk.text);
  if (chunk.finishReason === null) continue;
  // The last chunk has no text, but usage and timings.
  const { usage, timings } = chunk;
  console.log(
    `\n[${usage.completionTokens} tokens, ended by ${chunk.finishReason}, first token after ${timings.firstTokenMs.toFixed(0)} ms]`,
  );
}

// Leaving the loop stops the answer and frees its memory.
let numChunks = 0;
for await (const { text } of model.generateStream('A long story:', { maxTokens: 200, seed: 1 })) {
  if (text !== '' && ++numChunks === 5) break;
}
console.log(`stopped after ${numChunks} chunks`);

// A signal stops it from elsewhere; the call then fails with the code `aborted`.
const controller = new AbortController();
const answer = model.generate('Another one:', { maxTokens: 200, ignoreEos: true, signal: controller.signal });
setTimeout(() => controller.abort(), 1);
console.log('stopped:', await answer.catch((error) => error.code));

await model.dispose();
