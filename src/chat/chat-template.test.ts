import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { createChatTemplate } from './chat-template.ts';
import type { ChatTemplateOptions } from './chat-template.ts';
import type { ChatMessage } from './types.ts';

const TALK: ChatMessage[] = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Hi' },
  { role: 'assistant', content: 'Hello!' },
  { role: 'user', content: 'Bye' },
];

const create = (options: Partial<ChatTemplateOptions>) =>
  createChatTemplate({
    source: null,
    architecture: null,
    bosToken: '<s>',
    eosToken: '</s>',
    specialSpellings: [],
    now: () => Date.UTC(2024, 6, 26, 12),
    utcOffsetMinutes: 0,
    ...options,
  });

describe('built-in templates', () => {
  test.each<[string, string[], string]>([
    [
      'chatml',
      ['<|im_start|>', '<|im_end|>'],
      '<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n' +
        '<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n',
    ],
    [
      'llama3',
      ['<|start_header_id|>'],
      '<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>' +
        '<|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>' +
        '<|start_header_id|>assistant<|end_header_id|>\n\n',
    ],
    [
      'gemma',
      ['<start_of_turn>'],
      '<s><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello!<end_of_turn>\n' +
        '<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n',
    ],
    [
      'phi3',
      ['<|assistant|>', '<|end|>'],
      '<|system|>\nBe brief.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nHello!<|end|>\n<|user|>\nBye<|end|>\n<|assistant|>\n',
    ],
    [
      'zephyr',
      ['<|assistant|>', '<|user|>'],
      '<|system|>\nBe brief.</s>\n<|user|>\nHi</s>\n<|assistant|>\nHello!</s>\n<|user|>\nBye</s>\n<|assistant|>\n',
    ],
    [
      'llama2',
      ['[INST]', '<<SYS>>'],
      '<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Hello! </s><s>[INST] Bye [/INST]',
    ],
    ['mistral', ['[INST]'], '<s>[INST] Be brief.\n\nHi[/INST] Hello!</s>[INST] Bye[/INST]'],
    ['plain', ['<s>', '</s>'], 'Be brief.\nHi\nHello!\nBye'],
  ])('chooses %s by its special tokens', (name, specialSpellings, expected) => {
    const template = create({ specialSpellings });
    expect(template.origin).toBe(name);
    expect(template.render(TALK).text).toBe(expected);
    expect(create({ builtin: name }).origin).toBe(name);
  });

  test('omits the generation prompt on request', () => {
    const { text } = create({ builtin: 'chatml' }).render([{ role: 'user', content: 'Hi' }], {
      addGenerationPrompt: false,
    });
    expect(text).toBe('<|im_start|>user\nHi<|im_end|>\n');
  });

  test('rejects an unknown name and lists the available ones', () => {
    expect(() => create({ builtin: 'alpaca' })).toThrow(
      /no built-in chat template "alpaca" \(available: chatml, llama3/,
    );
  });

  test('renders tool and developer turns with the role names of the family', () => {
    const talk: ChatMessage[] = [
      { role: 'developer', content: 'D' },
      { role: 'tool', content: 'T' },
    ];
    expect(create({ builtin: 'llama3' }).render(talk).text).toContain(
      '>system<|end_header_id|>\n\nD<|eot_id|><|start_header_id|>ipython<',
    );
    expect(create({ builtin: 'phi3' }).render(talk).text).toContain('<|user|>\nT<|end|>');
  });
});

test('moves a system turn into the first user turn if the template rejects it', () => {
  const source =
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}[{{ m.role }}:{{ m.content }}]{% endfor %}";
  expect(create({ source }).render(TALK).text).toBe('[user:Be brief.\n\nHi][assistant:Hello!][user:Bye]');
  const silent = "{{ raise_exception('roles must alternate') }}";
  expect(() => create({ source: silent }).render(TALK)).toThrow('roles must alternate');
});

test('rejects unknown roles and contents that are not strings', () => {
  const template = create({ builtin: 'plain' });
  expect(() => template.render([{ role: 'root' as 'user', content: '' }])).toThrow('messages[0]: unknown role "root"');
  expect(() => template.render([{ role: 'user', content: 5 as unknown as string }])).toThrow('got number');
});

const folder = join(dirname(fileURLToPath(import.meta.url)), '../../../shared/suites/chat-templates');
const hasSuite = existsSync(folder);
if (!hasSuite) console.log('skipped: no ../shared/suites/chat-templates beside the repository');

describe.skipIf(!hasSuite)('well-known templates, written by hand', () => {
  const read = (file: string): string => readFileSync(join(folder, file), 'utf8');

  test('Qwen 3', () => {
    expect(create({ source: read('Qwen-Qwen3-0.6B.jinja') }).render(TALK).text).toBe(
      '<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n' +
        '<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n',
    );
    const { text } = create({ source: read('Qwen-Qwen3-0.6B.jinja') }).render(TALK, {
      variables: { enable_thinking: false },
    });
    expect(text).toMatch(/<\|im_start\|>assistant\n<think>\n\n<\/think>\n\n$/);
  });

  test('Llama 3.1', () => {
    expect(
      create({ source: read('meta-llama-Llama-3.1-8B-Instruct.jinja'), bosToken: '<|begin_of_text|>' }).render(TALK)
        .text,
    ).toBe(
      '<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n' +
        'Be brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n' +
        'Hello!<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
    );
  });

  test('Gemma 2', () => {
    const template = create({ source: read('google-gemma-2-2b-it.jinja'), bosToken: '<bos>' });
    const expected = (first: string): string =>
      `<bos><start_of_turn>user\n${first}<end_of_turn>\n<start_of_turn>model\nHello!<end_of_turn>\n` +
      '<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n';
    expect(template.render(TALK.slice(1)).text).toBe(expected('Hi'));
    expect(template.render(TALK).text).toBe(expected('Be brief.\n\nHi'));
  });
});

describe('the start of an answer', () => {
  const user: ChatMessage[] = [{ role: 'user', content: 'Hi' }];

  test('is behind the prompt, with its control tokens broken', () => {
    const template = create({ source: '{{ messages[0].content }}|', specialSpellings: ['<end>'] });
    expect(template.render(user).text).toBe('Hi|');
    const { text, guard } = template.render(user, { answerStart: 'Sure <end>' });
    expect(text).toBe(`Hi|Sure <${guard}end>`);
  });

  test('ends the reasoning that the template opens', () => {
    const template = create({
      source: "{{ messages[0].content }}|{{ '<think>\\n' if add_generation_prompt }}{# </think> #}",
    });
    expect(template.render(user).text).toBe('Hi|<think>\n');
    expect(template.render(user, { answerStart: 'Sure' }).text).toBe('Hi|<think>\n</think>\n\nSure');
    expect(template.render(user, { addGenerationPrompt: false, answerStart: 'Sure' }).text).toBe('Hi|Sure');
  });
});
