/** A prompt format for files without a template. */
export interface BuiltinTemplate {
  readonly name: string;
  /** Whether this vocabulary or architecture belongs to the family. */
  matches(spellings: ReadonlySet<string>, architecture: string | null): boolean;
  /** False: the family has no system turn; its text goes into the first user turn. */
  readonly hasSystemRole: boolean;
  /** The role name of a `tool` turn; null: rendered as a user turn. */
  readonly toolRole: string | null;
  readonly source: string;
}

const CHATML = `
{%- for m in messages -%}
{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}`;

const LLAMA3 = `
{{- bos_token -}}
{%- for m in messages -%}
{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m.content.strip() + '<|eot_id|>' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}`;

const GEMMA = `
{{- bos_token -}}
{%- for m in messages -%}
{%- set role = 'model' if m.role == 'assistant' else m.role -%}
{{ '<start_of_turn>' + role + '\\n' + m.content.strip() + '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}`;

const PHI3 = `
{%- for m in messages -%}
{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}`;

const ZEPHYR = `
{%- for m in messages -%}
{{ '<|' + m.role + '|>\\n' + m.content + eos_token + '\\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}`;

const LLAMA2 = `
{%- set ns = namespace(system='') -%}
{%- for m in messages -%}
{%- if m.role == 'system' -%}
{%- set ns.system = '<<SYS>>\\n' + m.content.strip() + '\\n<</SYS>>\\n\\n' -%}
{%- elif m.role == 'assistant' -%}
{{ ' ' + m.content.strip() + ' ' + eos_token }}
{%- else -%}
{{ bos_token + '[INST] ' + ns.system + m.content.strip() + ' [/INST]' }}
{%- set ns.system = '' -%}
{%- endif -%}
{%- endfor -%}`;

const MISTRAL = `
{{- bos_token -}}
{%- for m in messages -%}
{%- if m.role == 'assistant' -%}
{{ ' ' + m.content.strip() + eos_token }}
{%- else -%}
{{ '[INST] ' + m.content.strip() + '[/INST]' }}
{%- endif -%}
{%- endfor -%}`;

const PLAIN = `{{ messages | map(attribute='content') | join('\\n') }}`;

const has =
  (...required: string[]) =>
  (spellings: ReadonlySet<string>): boolean =>
    required.every((spelling) => spellings.has(spelling));

/** In the order they are tried; the last always matches. */
export const BUILTIN_TEMPLATES: readonly BuiltinTemplate[] = [
  { name: 'chatml', matches: has('<|im_start|>'), hasSystemRole: true, toolRole: 'tool', source: CHATML },
  { name: 'llama3', matches: has('<|start_header_id|>'), hasSystemRole: true, toolRole: 'ipython', source: LLAMA3 },
  { name: 'gemma', matches: has('<start_of_turn>'), hasSystemRole: false, toolRole: null, source: GEMMA },
  {
    name: 'phi3',
    matches: (spellings, architecture) => has('<|assistant|>', '<|end|>')(spellings) || architecture === 'phi3',
    hasSystemRole: true,
    toolRole: null,
    source: PHI3,
  },
  { name: 'zephyr', matches: has('<|assistant|>'), hasSystemRole: true, toolRole: null, source: ZEPHYR },
  { name: 'llama2', matches: has('[INST]', '<<SYS>>'), hasSystemRole: true, toolRole: null, source: LLAMA2 },
  { name: 'mistral', matches: has('[INST]'), hasSystemRole: false, toolRole: null, source: MISTRAL },
  { name: 'plain', matches: () => true, hasSystemRole: true, toolRole: null, source: PLAIN },
];
