import { pathToFileURL } from 'node:url';
import { freshTokens, serveRequests } from './contestant.ts';

// Typed by hand: the peer is installed on demand and unknown to our compiler.
interface Sequence {
  evaluateWithoutGeneratingNewTokens(tokens: number[]): Promise<void>;
  evaluate(tokens: number[], options: object): AsyncGenerator<number>;
  clearHistory(): Promise<void>;
}

const peer = pathToFileURL('.cache/peers/node_modules/node-llama-cpp/dist/index.js').href;
let sequence: Sequence;
let vocabSize = 0;
let salt = 0;

serveRequests(async (request) => {
  const start = performance.now();
  if (request.do === 'load') {
    const { getLlama, LlamaLogLevel } = await import(peer);
    const maxThreads = request.numThreads;
    const llama = await getLlama({ gpu: false, build: 'never', logLevel: LlamaLogLevel.error, maxThreads });
    const model = await llama.loadModel({ modelPath: request.path });
    const threads = { ideal: maxThreads, min: maxThreads };
    const context = await model.createContext({ contextSize: request.context, batchSize: 512, threads });
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
