// An answer that satisfies a JSON schema. node examples/schema.mjs [MODEL]
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
const messages = [{ role: 'user', content: 'Describe Paris as JSON: city, country and population.' }];
const options = { maxTokens: 120, temperature: 0 };

const { text } = await model.generate(messages, { ...options, grammar: { type: 'json_schema', schema } });
console.log(JSON.parse(text));

// The same with a regular expression, and with a grammar in llama.cpp's dialect.
const colour = await model.generate('My favourite colour is', {
  ...options,
  grammar: { type: 'regex', pattern: ' (red|green|blue)' },
});
console.log('regular expression:', colour.text);
const vote = await model.generate('Shall we go? Answer:', {
  ...options,
  grammar: { type: 'gbnf', text: 'root ::= "yes" | "no"' },
});
console.log('grammar:', vote.text);

// A schema that cannot be enforced is rejected, never ignored.
const remote = { type: 'json_schema', schema: { $ref: 'https://example.org/city.json' } };
const rejection = await model.generate(messages, { ...options, grammar: remote }).catch((error) => error);
console.log('rejected:', rejection.message);

await model.dispose();
