import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../../../test/support/refusal-of.ts';
import type { ModelFileFacts } from '../../model-library.ts';
import { capabilitiesOf, writeDetails, writeParameterSize } from './model-details.ts';
import { parseModelfile, readParameterValue, writeModelfile } from './modelfile.ts';

test.each([
  ['true', true],
  ['false', false],
  ['True', 'True'],
  ['0', 0],
  ['-1.5', -1.5],
  ['', ''],
  ['Infinity', 'Infinity'],
  ['a', 'a'],
])('the value %j is %j', (text, value) => {
  expect(readParameterValue(text)).toBe(value);
});

test('a Modelfile has all that a saved model has', () => {
  const source = `# a comment
from small

SYSTEM """
Be
brief."""
ADAPTER "./a b.gguf"
PARAMETER temperature 0.5
PARAMETER stop "a"
PARAMETER stop  b
LICENSE """
anything"""
LICENSE
MESSAGE user hi there
MESSAGE assistant """Hello,
you."""
`;
  expect(parseModelfile(source)).toEqual({
    from: 'small',
    system: 'Be\nbrief.',
    adapter: './a b.gguf',
    parameters: { temperature: 0.5, stop: ['a', 'b'] },
    messages: [
      { role: 'user', content: 'hi there' },
      { role: 'assistant', content: 'Hello,\nyou.' },
    ],
  });
});

test('the least is a FROM; without anything else nothing is set', () => {
  expect(parseModelfile('FROM small\r\n')).toEqual({
    from: 'small',
    system: null,
    adapter: null,
    parameters: {},
    messages: [],
  });
});

test.each([
  ['SYSTEM a', 'the Modelfile has no FROM', null],
  ['FROM', 'line 1: FROM requires a value', null],
  ['FROM small\n\nSYSTEM', 'line 3: SYSTEM requires a value', null],
  ['FROM small\nSYSTEM """a\nb\n', 'line 2: the text that begins with """ does not end', null],
  ['FROM small\nSYSTEM """"""', 'line 2: SYSTEM requires a value', null],
  ['FROM small\nPARAMETER stop', 'line 2: PARAMETER requires a name and a value', null],
  ['FROM small\nPARAMETER num_gpu 1', 'line 2: the parameter num_gpu is not supported', 'unsupported'],
  ['FROM small\nMESSAGE user', 'line 2: MESSAGE requires a role and a text', null],
  ['FROM small\nMESSAGE tool hi', 'line 2: the role must be one of system, user, assistant, got tool', null],
  ['FROM small\nTEMPLATE {{ .Prompt }}', 'line 2: TEMPLATE is not supported', 'unsupported'],
  ['FROM small\nRUN x', 'line 2: unknown instruction RUN', null],
])('%j is refused', (source, message, code) => {
  const refused = refusalOf(() => parseModelfile(source));
  expect(refused).toMatchObject({ status: 400, code: code ?? 'invalid_value' });
  expect(refused!.message).toContain(message);
});

describe('a saved model', () => {
  test('is written as a Modelfile', () => {
    const model = {
      from: 'small',
      system: 'Be brief.',
      adapter: './a.gguf',
      parameters: { temperature: 0, stop: ['a', 'b\nc'] },
      messages: [{ role: 'user', content: 'hi\nyou' }],
    };
    expect(writeModelfile(model)).toBe(`FROM small
ADAPTER ./a.gguf
PARAMETER temperature 0
PARAMETER stop "a"
PARAMETER stop """b
c"""
SYSTEM Be brief.
MESSAGE user """hi
you"""
`);
    expect(writeModelfile({ ...model, system: null, adapter: null, parameters: {}, messages: [] })).toBe(
      'FROM small\n',
    );
  });

  test.each(['\n', '\n\n', ' a ', '"a"', '\\n', 'a\\', 'a\nb ', '<|im_end|>'])(
    'with the stop %j is the same after writing and reading',
    (stop) => {
      const model = {
        from: 'small',
        system: '\na\n\nb',
        adapter: null,
        parameters: { stop: [stop], num_ctx: 32 },
        messages: [{ role: 'user', content: '\n "a"\nb' }],
      };
      expect(parseModelfile(writeModelfile(model))).toEqual(model);
    },
  );
});

test.each([
  [999, '1.00K'],
  [999_999, '1000.00K'],
  [1e6, '1.00M'],
  [134_515_008, '134.52M'],
  [999_999_999, '1000.00M'],
  [1e9, '1.0B'],
  [1_100_048_384, '1.1B'],
])('%i parameters are %s', (count, text) => {
  expect(writeParameterSize(count)).toBe(text);
});

describe('the details of a model', () => {
  const facts: ModelFileFacts = {
    displayName: 'Small',
    architecture: 'llama',
    numParameters: 1e9,
    quantization: 'Q4_K_M',
    contextLength: 512,
    license: null,
    metadata: {},
    canGenerate: async () => true,
    template: null,
  };

  test('are those of its file', () => {
    expect(writeDetails(facts, 'small')).toEqual({
      parent_model: 'small',
      format: 'gguf',
      family: 'llama',
      families: ['llama'],
      parameter_size: '1.0B',
      quantization_level: 'Q4_K_M',
    });
    expect(writeDetails(null)).toMatchObject({
      parent_model: '',
      family: 'unknown',
      parameter_size: '',
      quantization_level: 'unknown',
    });
  });

  test.each([
    [{ canGenerate: async () => false }, ['embedding']],
    [{ template: null }, ['completion']],
    [{ template: '{{ x }}' }, ['completion', 'tools']],
    [{ template: '{{ enable_thinking }}' }, ['completion', 'tools', 'thinking']],
  ])('with %j are the capabilities %j', async (more, capabilities) => {
    expect(await capabilitiesOf({ ...facts, ...more })).toEqual(capabilities);
  });
});
