import { pathToFileURL } from 'node:url';

// Typed by hand, only the parts we use: the peer is installed on demand and unknown to our compiler.
export interface LlamaCpp {
  loadModel(options: { modelPath: string }): Promise<LlamaModel>;
  dispose(): Promise<void>;
}
export interface LlamaModel {
  readonly fileInfo: { metadata: { tokenizer: { ggml: { tokens: string[] } } } };
  createContext(options: object): Promise<LlamaContext>;
  dispose(): Promise<void>;
}
export interface LlamaContext {
  getSequence(): LlamaSequence;
  dispose(): Promise<void>;
}
export interface LlamaSequence {
  evaluateWithoutGeneratingNewTokens(tokens: number[]): Promise<void>;
  evaluate(tokens: number[], options: object): AsyncGenerator<number>;
  /** The result has what `generateNext` of a token requested. */
  controlledEvaluate(
    input: [token: number, options: object][],
  ): Promise<{ next: { token: number; logits: Map<number, number> } }[]>;
  clearHistory(): Promise<void>;
}

/** node-llama-cpp from the folder where scripts/peers.mjs installs it: on the CPU, or by Vulkan if BENCH_GPU says so. */
export async function startLlamaCpp(maxThreads: number): Promise<LlamaCpp> {
  const { getLlama } = await import(pathToFileURL('.cache/peers/node_modules/node-llama-cpp/dist/index.js').href);
  const gpu = process.env['BENCH_GPU'] === 'vulkan' ? 'vulkan' : false;
  return getLlama({ gpu, build: 'never', logLevel: 'error', maxThreads });
}
