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
  async clear(numSequences) {
    for (const sequence of sequences.slice(0, numSequences)) await sequence.clearHistory();
  },
  prefill: (prompt) => sequences[0]!.evaluateWithoutGeneratingNewTokens(prompt),
  generate: (prompts, numTokens, onToken) =>
    prompts.length === 1 ? generateOne(prompts[0]!, numTokens, onToken) : generateMany(prompts, numTokens, onToken),
});

async function generateOne(prompt: number[], numTokens: number, onToken: (sequence: number) => void): Promise<void> {
  let count = 0;
  for await (const _ of sequences[0]!.evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
    onToken(0);
    if (++count === numTokens) return;
  }
}

/**
 * One step for all sequences. Eight concurrent calls of `evaluate` would be batched too, but the first with a token
 * does not wait for the others, and the torn batches make the peer less than half as fast.
 */
async function generateMany(
  prompts: number[][],
  numTokens: number,
  onToken: (sequence: number) => void,
): Promise<void> {
  const generateNext = { token: true, options: { temperature: 0 } };
  let inputs = prompts;
  for (let count = 0; count < numTokens; count++) {
    inputs = await Promise.all(
      inputs.map(async (tokens, i) => {
        const batch = tokens.map((token, at): [number, object] => [
          token,
          at === tokens.length - 1 ? { generateNext } : {},
        ]);
        const results = await sequences[i]!.controlledEvaluate(batch);
        onToken(i);
        return [results.at(-1)!.next.token];
      }),
    );
  }
}
