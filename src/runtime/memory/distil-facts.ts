import { termsOf } from '../../memory/lexical/terms.ts';
import { contentWords } from '../../memory/common/words.ts';
import { subjectOf } from '../../memory/agents/fact-key.ts';
import { MAX_VALUE_CHARS } from '../../memory/agents/fact-record.ts';
import { POLARITIES, type Episode, type Statement } from '../../memory/agents/types.ts';
import type { Prompt } from '../prompt.ts';

/** Facts of one message; more are rare, and a small model would repeat itself. */
const MAX_FACTS = 4;
/** Enough for `MAX_FACTS` short facts. */
export const MAX_FACT_TOKENS = 224;
/** Names of attributes that the model is asked to use again, so that a new value replaces the old one. */
const MAX_KNOWN = 24;

/** The form of the answer, which a grammar enforces: models of any size write valid JSON. */
export const FACTS_SCHEMA = {
  type: 'object',
  properties: {
    facts: {
      type: 'array',
      maxItems: MAX_FACTS,
      items: {
        type: 'object',
        properties: {
          subject: { type: 'string', minLength: 1, maxLength: 64 },
          attribute: { type: 'string', minLength: 1, maxLength: 64 },
          value: { type: 'string', minLength: 1, maxLength: 160 },
          polarity: { enum: [...POLARITIES] },
        },
        required: ['subject', 'attribute', 'value', 'polarity'],
        additionalProperties: false,
      },
    },
  },
  required: ['facts'],
  additionalProperties: false,
} as const;

const INSTRUCTION =
  'List the facts that a message states, as JSON. The subject is "user" for the speaker, or a name. Copy each value from the message. Questions and requests state no facts.';

const fact = (subject: string, attribute: string, value: string, polarity: Statement['polarity'] = 'is'): Statement => ({ subject, attribute, value, polarity }); // prettier-ignore

const EXAMPLES: readonly (readonly [string, readonly Statement[]])[] = [
  ['My sister Ana moved to Lisbon last week, and I no longer drink coffee.', [fact('Ana', 'city', 'Lisbon'), fact('user', 'drinks', 'coffee', 'is not')]], // prettier-ignore
  ['Can you explain how tides work?', []],
  ["By the way, I'm a nurse now. What should I cook tonight?", [fact('user', 'job', 'nurse')]],
];

const wrap = (text: string): string => `Message: ${JSON.stringify(text)}`;
const unwrap = (facts: readonly Statement[]): string => JSON.stringify({ facts });

/** The request for the facts of a message, in the form of the caller's own prompts: messages, or a text. */
export function factsPrompt(
  { text, speaker, speakerName }: Episode,
  known: readonly string[],
  isChat: boolean,
): Prompt {
  const names = known.slice(0, MAX_KNOWN).map((name) => JSON.stringify(name));
  const hint = names.length === 0 ? '' : `Attributes so far: ${names.join(', ')}. Use them again where they fit.\n`;
  const voice = speaker === 'user' ? '' : `From the ${speaker} ${JSON.stringify(speakerName)}. `;
  const last = `${hint}${voice}${wrap(text)}`;
  if (!isChat) {
    const examples = EXAMPLES.map(([message, facts]) => `${wrap(message)}\n${unwrap(facts)}\n\n`).join('');
    return `${INSTRUCTION}\n\n${examples}${last}\n`;
  }
  const turns = EXAMPLES.flatMap(([message, facts], i) => [
    { role: 'user', content: `${i === 0 ? `${INSTRUCTION}\n\n` : ''}${wrap(message)}` },
    { role: 'assistant', content: unwrap(facts) },
  ]);
  return [...turns, { role: 'user', content: last }];
}

/** The facts of an answer that the message supports; others are the model's inventions. */
export function readFacts(answer: string, message: string): readonly Statement[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(answer);
  } catch {
    return []; // cut off by the limit of tokens
  }
  const { facts } = (parsed ?? {}) as { readonly facts?: unknown };
  if (!Array.isArray(facts)) return [];
  const words = new Set(termsOf(message));
  return facts.slice(0, MAX_FACTS).filter((one): one is Statement => isStatement(one) && isGrounded(one, words));
}

function isStatement(value: unknown): value is Statement {
  if (typeof value !== 'object' || value === null) return false;
  const { subject, attribute, value: said, polarity } = value as Partial<Statement>;
  return (
    [subject, attribute, said].every((text) => typeof text === 'string' && text.trim() !== '' && text.length <= MAX_VALUE_CHARS) && // prettier-ignore
    POLARITIES.includes(polarity!)
  );
}

/** Every word of the value, and a subject that is not the user, is in the message. */
function isGrounded({ subject, value }: Statement, words: ReadonlySet<string>): boolean {
  const isSaid = (text: string): boolean => termsOf(text).every((term) => words.has(term));
  const content = contentWords(value);
  return content.length > 0 && isSaid(value) && (subjectOf(subject) === 'user' || isSaid(subject));
}
