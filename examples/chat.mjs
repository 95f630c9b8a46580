// A conversation with the model's chat template. node examples/chat.mjs [MODEL]
import { loadModel } from 'ruvllm';
import { modelPath } from './default-model.mjs';

const model = await loadModel(modelPath);
const messages = [{ role: 'system', content: 'Answer in one sentence.' }];
for (const question of ['What is the capital of France?', 'And of Italy?']) {
  messages.push({ role: 'user', content: question });
  const { text } = await model.generate(messages, { maxTokens: 40, temperature: 0 });
  messages.push({ role: 'assistant', content: text });
  console.log(`> ${question}\n${text}`);
}
await model.dispose();
