// Finds the text most similar to a question. node examples/embed.mjs [MODEL], preferably a sentence encoder such as all-MiniLM-L6-v2
import { loadModel } from 'ruvllm';
import { modelPath } from './default-model.mjs';

const texts = [
  'Paris is the capital of France.',
  'A cat sleeps sixteen hours a day.',
  'The stock market fell sharply on Monday.',
];
const question = 'How long do cats sleep?';

const model = await loadModel(modelPath);
const { embeddings, usage } = await model.embed([question, ...texts]);
const [query, ...vectors] = embeddings;
// Vectors have length 1: their dot product is the cosine of the angle between them.
const similarity = vectors.map((vector) => vector.reduce((sum, value, i) => sum + value * query[i], 0));
const order = texts.map((_, i) => i).sort((a, b) => similarity[b] - similarity[a]);
for (const i of order) console.log(similarity[i].toFixed(3), texts[i]);
console.log(`${usage.promptTokens} tokens, ${query.length} values each`);

await model.dispose();
