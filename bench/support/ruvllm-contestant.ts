import { loadModel, type Model } from 'ruvllm';
import { freshTokens, serveRequests } from './contestant.ts';

let model: Model;
let salt = 0;

serveRequests(async (request) => {
  const start = performance.now();
  if (request.do === 'load') {
    const { path, numThreads, context, kernels } = request;
    model = await loadModel(path, { numThreads, maxContext: context, maxSequences: 1, kernels });
    return performance.now() - start;
  }
  const { vocabSize } = model.modelInfo();
  const promptTokens = request.do === 'prefill' ? request.numTokens : Math.max(1, request.depth);
  const maxTokens = request.do === 'prefill' ? 1 : request.numTokens + 1;
  const prompt = freshTokens(promptTokens, vocabSize, salt++);
  const { timings, usage } = await model.generate(prompt, { temperature: 0, maxTokens, ignoreEos: true });
  if (usage.completionTokens !== maxTokens) throw new Error(`${usage.completionTokens} tokens, wanted ${maxTokens}`);
  return request.do === 'prefill' ? timings.promptMs : timings.generateMs;
});
