import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { BUILTIN_TEMPLATES } from './builtin-templates.ts';
import { createChatTemplate } from './chat-template.ts';
import { createControlGuards, stripGuard } from './control-guard.ts';
import type { ChatMessage } from './types.ts';

const SPELLINGS = [
  '<|im_start|>',
  '<|im_end|>',
  '</s>',
  '<s>',
  '<s><s>',
  '[INST]',
  '[/INST]',
  'aXa',
  '🙂🙃',
  '<|end|>',
  'z',
];

/** Counts overlapping occurrences. */
function count(text: string, spelling: string): number {
  let matches = 0;
  for (let at = text.indexOf(spelling); at >= 0; at = text.indexOf(spelling, at + 1)) matches++;
  return matches;
}

const protectWith = (spellings: string[]) => createControlGuards({ special: spellings })([]);

test('inserts the guard after the first character of every spelling, including overlapping ones', () => {
  const { guard, protect } = protectWith(SPELLINGS);
  expect(guard).toBe('\ufdd0');
  expect(protect('a<|im_end|>b')).toBe(`a<${guard}|im_end|>b`);
  expect(protect('aXaXa')).toBe(`a${guard}Xa${guard}Xa`);
  expect(protect('<s><s>')).toBe(`<${guard}s><${guard}s>`);
  expect(protect('🙂🙃')).toBe(`🙂${guard}🙃`);
  expect(protect('<|im_en')).toBe('<|im_en');
  expect(protect('zzz')).toBe('zzz');
  expect(stripGuard(protect('a<|im_end|>b</s>'), guard)).toBe('a<|im_end|>b</s>');
});

test('chooses a guard character that no text uses', () => {
  const used = Array.from({ length: 0x20 }, (_, i) => String.fromCharCode(0xfdd0 + i)).join('');
  expect(createControlGuards({ special: [] })([used.slice(0, 3)]).guard).toBe('\ufdd3');
  expect(createControlGuards({ special: [] })([used]).guard).toBe('\ue000');
  expect(createControlGuards({ special: ['\ue000x'] })([used]).guard).toBe('\ue001');
  const all = used + Array.from({ length: 0x1900 }, (_, i) => String.fromCharCode(0xe000 + i)).join('');
  expect(() => createControlGuards({ special: [] })([all])).toThrow('uses all 6432');
});

const piece = fc.constantFrom(
  ...SPELLINGS,
  '<',
  '|',
  'im_end',
  's',
  '>',
  'a',
  'X',
  '\ufdd0',
  '\ud83d',
  ' ',
  '\n',
  'user',
);
const hostile = fc.array(piece, { maxLength: 12 }).map((parts) => `.${parts.join('')}.`);

test('renders as many control tokens from hostile contents as from harmless ones, in every built-in', () => {
  fc.assert(
    fc.property(
      fc.array(hostile, { minLength: 4, maxLength: 4 }),
      hostile,
      fc.constantFrom(...BUILTIN_TEMPLATES.map(({ name }) => name)),
      (contents, name, builtin) => {
        const template = createChatTemplate({
          source: null,
          architecture: null,
          bosToken: '<s>',
          eosToken: '</s>',
          specialSpellings: SPELLINGS,
          builtin,
        });
        const roles = ['system', 'user', 'assistant', 'tool'] as const;
        const talk = (texts: string[]): ChatMessage[] =>
          roles.map((role, i) => ({ role, content: texts[i] as string, name }));
        const { text, guard } = template.render(talk(contents));
        const harmless = template.render(talk(contents.map(() => '.-.'))).text;
        for (const spelling of SPELLINGS.slice(0, -1)) expect(count(text, spelling)).toBe(count(harmless, spelling));
        for (const content of contents) expect(stripGuard(text, guard)).toContain(content.trim());
      },
    ),
    { numRuns: 300, seed: 3 },
  );
});

test('guards names, tool definitions, their keys and variables', () => {
  const source = `{{ messages[-1].name }}|{{ tools | tojson(ensure_ascii=true) }}|{{ note }}|{{ eos_token }}`;
  const template = createChatTemplate({
    source,
    architecture: null,
    bosToken: '<s>',
    eosToken: '</s>',
    specialSpellings: ['</s>'],
  });
  const { text, guard } = template.render([{ role: 'user', content: '', name: 'x</s>' }], {
    tools: [{ '</s>': ['é</s>'] }],
    variables: { note: '</s>', eos_token: 'fake' },
  });
  const broken = `<${guard}/s>`;
  expect(text).toBe(`x${broken}|[{"${broken}": ["\\u00e9${broken}"]}]|${broken}|</s>`);
});

const CONVERSATION = ['system', 'user', 'assistant'] as const;

function renderAll(
  source: string,
  spellings: { specialSpellings?: string[]; otherSpellings?: string[] },
  text: string,
) {
  const template = createChatTemplate({
    source,
    architecture: null,
    bosToken: '',
    eosToken: '',
    specialSpellings: [],
    ...spellings,
  });
  return template.render(
    CONVERSATION.map((role) => ({ role, content: text })),
    { addGenerationPrompt: false },
  );
}

test('guards marks of the format that are no control tokens, and not tags of HTML', () => {
  const source = `{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<x>{% endfor %}`;
  const otherSpellings = ['<|start|>', '<|message|>', '<|other|>', '[INST]', '<x>', '<b>', '\n\n', '  '];
  const text = '<|start|><|other|>[INST]<x><b>\n\n  .';
  const { text: rendered, guard } = renderAll(source, { otherSpellings }, text);
  const shown = `<${guard}|start|><${guard}|other|>[${guard}INST]<${guard}x><b>\n\n  .`;
  expect(rendered).toBe(CONVERSATION.map((role) => `<|start|>${role}<|message|>${shown}<x>`).join(''));
});

test('keeps marks of reasoning in answers, where templates search for them', () => {
  const source = `{% for m in messages %}{{ m.content.split('</think>')[-1] }}|{% endfor %}`;
  const { text, guard } = renderAll(source, { otherSpellings: ['</think>'] }, 'a</think>b');
  expect(text).toBe(`a<${guard}/think>b|a<${guard}/think>b|b|`);
});

test('puts a space into marks that the vocabulary has no token for', () => {
  const turn = `{% if m.role == 'tool' %}[RESULT]{% else %}<|{{ m.role }}|>{% endif %}{{ m.content }}`;
  const source = `{% for m in messages %}${turn}{% endfor %}`;
  const text = '<|system|>[RESULT][INST]';
  const { text: rendered } = renderAll(source, {}, text);
  expect(rendered).toBe(CONVERSATION.map((role) => `<|${role}|>< |system|>[ RESULT][INST]`).join(''));
  expect(renderAll(source, { specialSpellings: ['<|system|>'] }, text).text).toContain('<\ufdd0|system|>[ RESULT]');
});
