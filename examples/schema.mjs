// An answer that is an instance of a JSON schema, whatever the model would rather say. node examples/schema.mjs [MODEL]
import { loadModel } from 'ruvllm';
import { modelPath } from './default-model.mjs';

const schema = {
  type: 'object',
  properties: {
    city: { type: 'string', maxLength: 20 },
    country: { enum: ['France', 'Italy', 'Spain'] },
    population: { type: 'integer', minimum: 0, maximum: 100_000_000 },
  },
  required: ['city', 'country', 'population'],
  additionalProperties: false,
};

const model = await loadModel(modelPath);
const messages = [{ role: 'user', content: 'Tell me of Paris as JSON: its city, country and population.' }];
const options = { maxTokens: 120, temperature: 0 };

const { text } = await model.generate(messages, { ...options, grammar: { type: 'json_schema', schema } });
console.log(JSON.parse(text));

// The same for a pattern, and for a grammar in llama.cpp's dialect.
const colour = await model.generate('My favourite colour is', {
  ...options,
  grammar: { type: 'regex', pattern: ' (red|green|blue)' },
});
console.log('a pattern:', colour.text);
const vote = await model.generate('Shall we go? Answer:', {
  ...options,
  grammar: { type: 'gbnf', text: 'root ::= "yes" | "no"' },
});
console.log('a grammar:', vote.text);

// What cannot be enforced is refused, and never left out.
const elsewhere = { type: 'json_schema', schema: { $ref: 'https://example.org/city.json' } };
const refusal = await model.generate(messages, { ...options, grammar: elsewhere }).catch((error) => error);
console.log('refused:', refusal.message);

await model.dispose();
