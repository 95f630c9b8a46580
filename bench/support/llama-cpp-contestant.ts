import { type LlamaSequence, startLlamaCpp } from './llama-cpp.ts';
import { serveEngine } from './serve-engine.ts';

let sequences: LlamaSequence[];

serveEngine({
  async load({ path, numThreads, context: contextSize, numSequences }) {
    const llama = await startLlamaCpp(numThreads);
    const model = await llama.loadModel({ modelPath: path });
    const threads = { ideal: numThreads, min: numThreads };
    const context = await model.createContext({ contextSize, sequences: numSequences, batchSize: 512, threads });
    sequences = Array.from({ length: numSequences }, () => context.getSequence());
    return { vocabSize: model.fileInfo.metadata.tokenizer.ggml.tokens.length };
  },
  clear: (sequence) => sequences[sequence]!.clearHistory(),
  prefill: (prompt) => sequences[0]!.evaluateWithoutGeneratingNewTokens(prompt),
  async *generate(sequence, prompt, numTokens) {
    let count = 0;
    for await (const token of sequences[sequence]!.evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
      yield token;
      if (++count === numTokens) return;
    }
  },
});
