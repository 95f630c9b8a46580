// Shows an answer while it is made, and gives another one up. node examples/stream.mjs [MODEL]
import { loadModel } from 'ruvllm';
import { modelPath } from './default-model.mjs';

const model = await loadModel(modelPath);

for await (const chunk of model.generateStream('Once upon a time', { maxTokens: 60, seed: 1 })) {
  process.stdout.write(chunk.text);
  if (chunk.finishReason === null) continue;
  // The last chunk has no text of its own but what is known at the end.
  const { usage, timings } = chunk;
  console.log(
    `\n[${usage.completionTokens} tokens, ended by ${chunk.finishReason}, first one after ${timings.firstTokenMs.toFixed(0)} ms]`,
  );
}

// Leaving the loop is enough to stop: what the answer had in memory is free again.
let numPieces = 0;
for await (const { text } of model.generateStream('A long story:', { maxTokens: 200, seed: 1 })) {
  if (text !== '' && ++numPieces === 5) break;
}
console.log(`stopped after ${numPieces} pieces`);

// From elsewhere a signal stops it; then the call fails with the code `aborted`.
const clock = new AbortController();
const answer = model.generate('Another one:', { maxTokens: 200, ignoreEos: true, signal: clock.signal });
setTimeout(() => clock.abort(), 1);
console.log('given up:', await answer.catch((error) => error.code));

await model.dispose();
