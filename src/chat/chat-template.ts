import { RuvLLMError } from '../core/errors.ts';
import { BUILTIN_TEMPLATES } from './builtin-templates.ts';
import type { BuiltinTemplate } from './builtin-templates.ts';
import { createControlGuards, stringsOf } from './control-guard.ts';
import { foldSystem } from './fold-system.ts';
import type { TemplateClock } from './jinja/globals.ts';
import { resolveTemplateLimits } from './jinja/limits.ts';
import type { TemplateLimits } from './jinja/limits.ts';
import { renderTemplate } from './jinja/render.ts';
import { parseTemplate } from './jinja/syntax.ts';
import { adaptMessages } from './tools/adapt-messages.ts';
import { probeDialect } from './tools/dialect.ts';
import type { ToolDialect } from './tools/dialect.ts';
import { addInstruction, describeTools } from './tools/instruction.ts';
import { findReasoning, startsInReasoning } from './tools/reasoning.ts';
import { fillToolGaps } from './tools/tool-specs.ts';
import type { ChatMessage, ChatTemplate, RenderedChat, RenderOptions } from './types.ts';

/** Options of `createChatTemplate`. */
export interface ChatTemplateOptions {
  /** The file's Jinja template; null: a built-in is chosen by the vocabulary. */
  source: string | null;
  architecture: string | null;
  bosToken: string;
  eosToken: string;
  /** Spellings of control tokens, which must not take effect in users' text. */
  specialSpellings: readonly string[];
  /** Spellings of other tokens of which some are marks of the chat format. Default: none. */
  otherSpellings?: readonly string[];
  /** Uses this built-in instead of the file's template. Default: none. */
  builtin?: string | null;
  /** The `origin` of a template from `source`. Default `file`. */
  origin?: string;
  limits?: Partial<TemplateLimits>;
  /** Milliseconds since 1970, for `strftime_now` and the time limit. Default `Date.now`. */
  now?: () => number;
  /** Minutes east of UTC for `strftime_now`. Default: the local time zone. */
  utcOffsetMinutes?: number;
}

const ROLES: ReadonlySet<string> = new Set(['system', 'developer', 'user', 'assistant', 'tool']);

function chooseBuiltin({ builtin, architecture, specialSpellings }: ChatTemplateOptions): BuiltinTemplate {
  const spellings = new Set(specialSpellings);
  const template = BUILTIN_TEMPLATES.find((one) =>
    builtin == null ? one.matches(spellings, architecture) : one.name === builtin,
  );
  if (template !== undefined) return template;
  const names = BUILTIN_TEMPLATES.map((one) => one.name).join(', ');
  throw new RuvLLMError('invalid_option', `no built-in chat template "${builtin}" (available: ${names})`, {
    data: { option: 'chatTemplate' },
  });
}

function checkMessages(messages: readonly ChatMessage[]): void {
  messages.forEach(({ role, content }, i) => {
    if (!ROLES.has(role)) throw new RuvLLMError('invalid_option', `messages[${i}]: unknown role "${role}"`);
    if (typeof content !== 'string') {
      throw new RuvLLMError('invalid_option', `messages[${i}]: content must be a string, got ${typeof content}`);
    }
  });
}

function createRoles(builtin: BuiltinTemplate | null, source: string): Partial<Record<string, string>> {
  // `developer` is a newer name for `system`; older templates never mention it.
  const developerRole = source.includes('developer') ? 'developer' : 'system';
  const toolRole = builtin === null ? 'tool' : (builtin.toolRole ?? 'user');
  return { developer: developerRole, tool: toolRole };
}

/** Real templates need under 2,000 steps for a probe, so it gets a smaller budget than a long conversation. */
function limitProbe(limits: TemplateLimits): TemplateLimits {
  return {
    ...limits,
    maxSteps: Math.min(limits.maxSteps, 20_000),
    maxItems: Math.min(limits.maxItems, 2_000),
    maxTimeMs: Math.min(limits.maxTimeMs, 500),
  };
}

function createClock(options: ChatTemplateOptions): TemplateClock {
  const { now = Date.now, utcOffsetMinutes } = options;
  return { now, utcOffsetMinutes: (nowMs) => utcOffsetMinutes ?? -new Date(nowMs).getTimezoneOffset() };
}

/** A model's chat template: the file's, or a built-in that fits its vocabulary. */
export function createChatTemplate(options: ChatTemplateOptions): ChatTemplate {
  const isFromFile = options.source !== null && options.builtin == null;
  const builtin = isFromFile ? null : chooseBuiltin(options);
  const source = builtin?.source ?? (options.source as string);
  const limits = resolveTemplateLimits(options.limits);
  const program = parseTemplate(source, limits);
  const clock = createClock(options);
  const marks = marksOf(source, options);
  let guardFor: ReturnType<typeof createControlGuards> | null = null;
  const { bosToken, eosToken } = options;

  const roles = createRoles(builtin, source);

  const renderRaw = (messages: readonly object[], settings: RenderOptions, within = limits): RenderedChat => {
    const untrusted = { ...settings.variables, messages, tools: settings.tools ?? null };
    const { answerStart = '' } = settings;
    guardFor ??= createControlGuards({ ...marks, plain: findPlainMarks() });
    const { guard, protect } = guardFor([source, bosToken, eosToken, answerStart, ...stringsOf(untrusted)]);
    const trusted = {
      bos_token: bosToken,
      eos_token: eosToken,
      add_generation_prompt: settings.addGenerationPrompt ?? true,
    };
    const mapText = (part: string, owner: object | null): string => protect(part, isAnswer(owner));
    const text = renderTemplate({ program, limits: within, clock, guard, trusted, untrusted, mapText });
    return { text: answerStart === '' ? text : `${closeReasoning(text)}${protect(answerStart, true)}`, guard };
  };

  /** Marks around turns that the vocabulary has no tokens for, as in the formats of Llama 2 and Zephyr. */
  function findPlainMarks(): readonly string[] {
    guardFor = createControlGuards(marks); // for the probes
    const known = new Set([...marks.special, ...marks.ofAnswers]);
    const probes = PROBES.flatMap((messages) => [{ messages }, { messages, tools: [PROBE_TOOL] }]);
    const found = probes.flatMap(({ messages, ...settings }) => {
      try {
        return renderRaw(messages, settings, limitProbe(limits)).text.match(MARK) ?? [];
      } catch (error) {
        if (error instanceof RuvLLMError) return []; // of a template without such turns
        throw error;
      }
    });
    return [...new Set(found)].filter((mark) => !known.has(mark));
  }

  const reasoning = findReasoning(source);
  /** An answer does not start inside the reasoning that some templates open in the assistant's header. */
  const closeReasoning = (text: string): string =>
    startsInReasoning(reasoning, text)
      ? `${text.trimEnd()}\n${reasoning!.closes[0]!}\n\n${reasoning!.next ?? ''}`
      : text;

  let dialect: ToolDialect | null = null;
  const getDialect = (): ToolDialect => {
    dialect ??= probeDialect(
      (messages, tools) =>
        renderRaw(messages, { addGenerationPrompt: false, ...(tools && { tools }) }, limitProbe(limits)).text,
      source,
    );
    return dialect;
  };

  const renderOnce = (messages: readonly ChatMessage[], settings: RenderOptions): RenderedChat => {
    const adapted = needsDialect(messages) ? adaptMessages(messages, getDialect()) : messages;
    const renamed = adapted.map((message) => ({
      ...message,
      role: typeof message.role === 'string' ? (roles[message.role] ?? message.role) : message.role,
    }));
    const { tools, ...otherSettings } = settings;
    if (tools === undefined || tools.length === 0) return renderRaw(renamed, otherSettings);
    if (!getDialect().showsTools) return renderRaw(renamed, otherSettings);
    try {
      return renderRaw(renamed, settings);
    } catch (error) {
      // Some templates fail on tools without a description; fill the gaps and try again.
      if (!(error instanceof RuvLLMError) || error.data['raised'] !== undefined) throw error;
      return renderRaw(renamed, { ...otherSettings, tools: fillToolGaps(tools) });
    }
  };

  return {
    origin: builtin?.name ?? options.origin ?? 'file',
    get dialect() {
      return getDialect();
    },
    reasoning,
    reads: (name) => new RegExp(`\\b${name}\\b`).test(source),
    render(input, settings = {}) {
      checkMessages(input);
      const hasTools = settings.tools !== undefined && settings.tools.length > 0;
      const instruction = hasTools ? describeTools(settings.tools!, getDialect()) : null;
      const messages = instruction === null ? input : addInstruction(input, instruction);
      if (builtin?.hasSystemRole === false) return renderOnce(foldSystem(messages), settings);
      try {
        return renderOnce(messages, settings);
      } catch (error) {
        if (!isSystemRefusal(error, messages)) throw error;
        return renderOnce(foldSystem(messages), settings);
      }
    },
  };
}

const MARK = /<[|｜][^<>\s'"]{1,40}>|<\/?[a-z_]+_(?:of_turn|call|response)>|\[\/?[A-Z_]{3,}\]|<<\/?SYS>>/g;
/** A name in brackets, and one that HTML has too. */
const BRACKETS = /^[<[\]]\S+[>[\]]$/;
const TAG = /^<\/?[a-z][a-z0-9]*>$/i;
const PROBE_CALL = { id: 'probe0000', type: 'function', function: { name: 'probe', arguments: { key: 'value' } } };
const PROBE_TURNS = ['user', 'assistant', 'user'].map((role) => ({ role, content: 'x' }));
/** One turn that a template rejects must not hide the marks of the others. */
const PROBES: readonly (readonly object[])[] = [
  PROBE_TURNS,
  [{ role: 'system', content: 'x' }, ...PROBE_TURNS],
  [
    { role: 'user', content: 'x' },
    { role: 'assistant', content: '', tool_calls: [PROBE_CALL] },
    { role: 'tool', content: 'x', tool_call_id: PROBE_CALL.id, name: 'probe' },
  ],
];
const PROBE_TOOL = {
  type: 'function',
  function: { name: 'probe', description: 'x', parameters: { type: 'object', properties: {}, required: [] } },
};

const isAnswer = (owner: object | null): boolean => (owner as { role?: unknown } | null)?.role === 'assistant';

/**
 * The spellings that untrusted text must not have: those of control tokens, and others that are marks of the format. Text has tags of
 * HTML and runs of spaces as well, for which some vocabularies have tokens.
 */
function marksOf(source: string, { specialSpellings, otherSpellings = [] }: ChatTemplateOptions) {
  const isMark = (spelling: string): boolean =>
    BRACKETS.test(spelling) && (!TAG.test(spelling) || source.includes(spelling));
  const marks = otherSpellings.filter(isMark);
  const isThought = (spelling: string): boolean => spelling.includes('think');
  return {
    special: [...specialSpellings, ...marks.filter((mark) => !isThought(mark))],
    ofAnswers: marks.filter(isThought),
  };
}

/** Plain conversations do not need the dialect. */
function needsDialect(messages: readonly ChatMessage[]): boolean {
  return messages.some(
    (message) => message.role === 'tool' || message.toolCalls !== undefined || message.reasoning !== undefined,
  );
}

/** Some templates, such as Gemma's, raise on a system turn; its text then goes into the user's turn. */
function isSystemRefusal(error: unknown, messages: readonly ChatMessage[]): boolean {
  if (!(error instanceof RuvLLMError) || typeof error.data['raised'] !== 'string') return false;
  const hasSystem = messages.some(({ role }) => role === 'system' || role === 'developer');
  return hasSystem && /system/i.test(error.data['raised']);
}
