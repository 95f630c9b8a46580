// Text from a prompt, complete and streamed. node examples/generate.mjs [MODEL]
import { loadModel } from 'ruvllm';
import { modelPath } from './default-model.mjs';

const model = await loadModel(modelPath);
const prompt = 'Once upon a time';
const params = { maxTokens: 40, seed: 1 };

const { text, usage, timings } = await model.generate(prompt, params);
console.log(prompt + text);
console.log(`${usage.completionTokens} tokens, ${timings.tokensPerSecond?.toFixed(1)} tokens/s`);

let streamed = '';
for await (const chunk of model.generateStream(prompt, params)) streamed += chunk.text;
console.log(streamed === text ? 'the stream gave the same text' : 'BUG: the stream gave another text');

await model.dispose();
