// OpenAI's client with `ruvllm serve`. node examples/openai-client.mjs [URL], default: the server of `npm start`
import OpenAI from 'openai';

const url = process.argv[2] ?? 'http://127.0.0.1:8080';
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: process.env.RUVLLM_API_KEY ?? 'none' });

for await (const { id } of await client.models.list()) console.log('served:', id);

const messages = [{ role: 'user', content: 'Name a colour.' }];
const stream = await client.chat.completions.create({
  model: 'default', // Or one of the names above.
  messages,
  max_tokens: 24,
  stream: true,
  stream_options: { include_usage: true },
});
let usage = null;
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? '');
  usage = chunk.usage ?? usage;
}
console.log(`\n${usage.completion_tokens} tokens`);

const { choices } = await client.chat.completions.create({
  model: 'default',
  messages,
  max_tokens: 60,
  response_format: {
    type: 'json_schema',
    json_schema: {
      name: 'colour',
      schema: {
        type: 'object',
        properties: { colour: { enum: ['red', 'green', 'blue'] } },
        required: ['colour'],
        additionalProperties: false,
      },
    },
  },
});
console.log(JSON.parse(choices[0].message.content));
