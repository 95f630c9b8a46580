// Anthropic's client with `ruvllm serve`. node examples/anthropic-client.mjs [URL], default: the server of `npm start`
import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic({
  baseURL: process.argv[2] ?? 'http://127.0.0.1:8080',
  apiKey: process.env.RUVLLM_API_KEY ?? 'none',
});
const request = {
  model: 'default',
  max_tokens: 24,
  system: 'Answer in one sentence.',
  messages: [{ role: 'user', content: 'What is the capital of France?' }],
};

const { input_tokens: numTokens } = await client.messages.countTokens({ model: 'default', messages: request.messages });
console.log(`the question has ${numTokens} tokens`);

const message = await client.messages.create(request);
for (const part of message.content) if (part.type === 'text') console.log(part.text);
console.log(`ended by ${message.stop_reason}, ${message.usage.output_tokens} tokens`);

const stream = client.messages.stream(request).on('text', (text) => process.stdout.write(text));
const { usage } = await stream.finalMessage();
console.log(`\nstreamed ${usage.output_tokens} tokens`);
