// A shared prefix that is computed once, and a conversation that continues. node examples/prefix-cache.mjs [MODEL]
import { loadModel } from 'ruvllm';
import { modelPath } from './default-model.mjs';

const model = await loadModel(modelPath);
const params = { maxTokens: 16, temperature: 0 };
const describe = ({ usage, timings }) =>
  `${usage.cachedTokens} of ${usage.promptTokens} prompt tokens cached, first token after ${timings.firstTokenMs.toFixed(1)} ms`;

const rules = 'You are a librarian. Answer in one sentence, name one book, and never give the ending away.\n';
const first = await model.generate(`${rules}Q: A book about the sea?\nA:`, params);
console.log(`first question:  ${describe(first)}`);
const second = await model.generate(`${rules}Q: A book about the moon?\nA:`, params);
console.log(`second question: ${describe(second)}`);
if (second.usage.cachedTokens === 0) console.log('BUG: the rules were computed twice');

// Another tenant never gets a hit on this one's pages, and a call can leave no pages in the cache.
const other = await model.generate(`${rules}Q: A book about the moon?\nA:`, { ...params, tenant: 'other' });
console.log(`another tenant:  ${describe(other)}`);
if (other.usage.cachedTokens !== 0) console.log('BUG: tenants share cached pages');

const session = model.session('story');
let turn = await session.generate('Once upon a time', params);
console.log(`session, turn 1: ${describe(turn)}`);
turn = await session.generate(' Then the fox said:', params);
console.log(`session, turn 2: ${describe(turn)}`);
console.log(`${session.numTurns} turns, ${session.tokenIds.length} tokens:`, model.tokenizer.decode(session.tokenIds));

await model.dispose();
