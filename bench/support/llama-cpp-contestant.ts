import { freshTokens, serveRequests } from './contestant.ts';
import { type LlamaSequence, startLlamaCpp } from './llama-cpp.ts';

let sequence: LlamaSequence;
let vocabSize = 0;
let salt = 0;

serveRequests(async (request) => {
  const start = performance.now();
  if (request.do === 'load') {
    const { path, numThreads, context: contextSize } = request;
    const llama = await startLlamaCpp(numThreads);
    const model = await llama.loadModel({ modelPath: path });
    const threads = { ideal: numThreads, min: numThreads };
    const context = await model.createContext({ contextSize, batchSize: 512, threads });
    sequence = context.getSequence();
    vocabSize = model.fileInfo.metadata.tokenizer.ggml.tokens.length;
    return performance.now() - start;
  }
  await sequence.clearHistory();
  const numPrompt = request.do === 'prefill' ? request.numTokens : Math.max(1, request.depth);
  const prompt = freshTokens(numPrompt, vocabSize, salt++);
  if (request.do === 'prefill') {
    const from = performance.now();
    await sequence.evaluateWithoutGeneratingNewTokens(prompt);
    return performance.now() - from;
  }
  let from = 0;
  let count = 0;
  for await (const _ of sequence.evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
    if (count === 0) from = performance.now(); // the first token belongs to the prompt
    if (count++ === request.numTokens) break;
  }
  return performance.now() - from;
});
