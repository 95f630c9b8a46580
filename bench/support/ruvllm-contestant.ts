import { loadModel, type Model } from 'ruvllm';
import { serveEngine } from './serve-engine.ts';

let model: Model;

serveEngine({
  async load({ path, numThreads, context, numSequences, kernels, gpuLayers }) {
    model = await loadModel(path, {
      numThreads,
      maxContext: context,
      kvCacheTokens: context * numSequences,
      maxSequences: numSequences,
      kernels: (['native', 'webgpu'] as const).find((name) => kernels.startsWith(name)) ?? 'wasm',
      ...(gpuLayers === undefined ? {} : { gpuLayers }),
      kvPacking: 'off', // The other side uses 16 bits too.
      speculation: 'off', // Random models repeat themselves: drafts would be accepted that no text would have.
    });
    const { kernels: loaded, vocabSize } = model.modelInfo();
    if (!loaded.startsWith(kernels)) throw new Error(`loaded the kernels "${loaded}", expected "${kernels}"`);
    return { vocabSize };
  },
  clear: async () => {},
  async prefill(prompt) {
    await model.generate(prompt, { temperature: 0, maxTokens: 1, ignoreEos: true });
  },
  async generate(prompts, numTokens, onToken) {
    const options = { temperature: 0, maxTokens: numTokens, ignoreEos: true };
    const read = async (prompt: number[], sequence: number): Promise<void> => {
      for await (const { tokenIds } of model.generateStream(prompt, options)) {
        for (const _ of tokenIds) onToken(sequence);
      }
    };
    await Promise.all(prompts.map(read));
  },
});
