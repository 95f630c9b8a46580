// A conversation through the model's own chat template. node examples/chat.mjs [MODEL]
import { loadModel } from 'ruvllm';

const model = await loadModel(process.argv[2] ?? 'Qwen/Qwen2.5-0.5B-Instruct-GGUF:q4_k_m');
const messages = [{ role: 'system', content: 'Answer in one sentence.' }];
for (const question of ['What is the capital of France?', 'And of Italy?']) {
  messages.push({ role: 'user', content: question });
  const { text } = await model.generate(messages, { maxTokens: 40, temperature: 0 });
  messages.push({ role: 'assistant', content: text });
  console.log(`> ${question}\n${text}`);
}
await model.dispose();
