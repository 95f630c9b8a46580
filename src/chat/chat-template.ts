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
import type { ChatMessage, ChatTemplate, RenderedChat, RenderOptions } from './types.ts';

export interface ChatTemplateOptions {
  /** The file's own Jinja template; null: a built-in is chosen by the vocabulary. */
  source: string | null;
  architecture: string | null;
  bosToken: string;
  eosToken: string;
  /** Spellings that must not come true when users write them. */
  specialSpellings: readonly string[];
  /** Takes this built-in whatever the file says. Default: none. */
  builtin?: string | null;
  limits?: Partial<TemplateLimits>;
  /** Milliseconds since 1970, for `strftime_now` and the time limit. Default `Date.now`. */
  now?: () => number;
  /** Minutes east of UTC for `strftime_now`. Default: the local time zone. */
  utcOffsetMinutes?: number;
}

const ROLES: ReadonlySet<string> = new Set(['system', 'developer', 'user', 'assistant', 'tool']);

function chooseBuiltin({ builtin, architecture, specialSpellings }: ChatTemplateOptions): BuiltinTemplate {
  const spellings = new Set(specialSpellings);
  const found = BUILTIN_TEMPLATES.find((one) =>
    builtin == null ? one.matches(spellings, architecture) : one.name === builtin,
  );
  if (found !== undefined) return found;
  const known = BUILTIN_TEMPLATES.map((one) => one.name).join(', ');
  throw new RuvLLMError('invalid_option', `no built-in chat template "${builtin}" (known: ${known})`);
}

function checkMessages(messages: readonly ChatMessage[]): void {
  messages.forEach(({ role, content }, i) => {
    if (!ROLES.has(role)) throw new RuvLLMError('invalid_option', `messages[${i}]: unknown role "${role}"`);
    if (typeof content !== 'string') {
      throw new RuvLLMError('invalid_option', `messages[${i}]: content must be a string, got ${typeof content}`);
    }
  });
}

/** What the template gets to see as `messages`. */
function toTemplateMessages(
  messages: readonly ChatMessage[],
  builtin: BuiltinTemplate | null,
  source: string,
): Record<string, unknown>[] {
  // `developer` is a later name for `system`: templates that never mention it mean that.
  const developerRole = source.includes('developer') ? 'developer' : 'system';
  const toolRole = builtin === null ? 'tool' : (builtin.toolRole ?? 'user');
  const roles: Partial<Record<ChatMessage['role'], string>> = { developer: developerRole, tool: toolRole };
  return messages.map((message) => ({ ...message, role: roles[message.role] ?? message.role }));
}

function createClock(options: ChatTemplateOptions): TemplateClock {
  const { now = Date.now, utcOffsetMinutes } = options;
  return { now, utcOffsetMinutes: (nowMs) => utcOffsetMinutes ?? -new Date(nowMs).getTimezoneOffset() };
}

/** A model's chat template: the file's own, or a built-in that fits its vocabulary. */
export function createChatTemplate(options: ChatTemplateOptions): ChatTemplate {
  const isFromFile = options.source !== null && options.builtin == null;
  const builtin = isFromFile ? null : chooseBuiltin(options);
  const source = builtin?.source ?? (options.source as string);
  const limits = resolveTemplateLimits(options.limits);
  const program = parseTemplate(source, limits);
  const clock = createClock(options);
  const guardFor = createControlGuards(options.specialSpellings);
  const { bosToken, eosToken } = options;

  const renderOnce = (messages: readonly ChatMessage[], settings: RenderOptions): RenderedChat => {
    const untrusted = {
      ...settings.variables,
      messages: toTemplateMessages(messages, builtin, source),
      tools: settings.tools ?? null,
    };
    const { guard, protect } = guardFor([source, bosToken, eosToken, ...stringsOf(untrusted)]);
    const trusted = {
      bos_token: bosToken,
      eos_token: eosToken,
      add_generation_prompt: settings.addGenerationPrompt ?? true,
    };
    const text = renderTemplate({ program, limits, clock, guard, trusted, untrusted, mapText: protect });
    return { text, guard };
  };

  return {
    origin: builtin?.name ?? 'file',
    render(messages, settings = {}) {
      checkMessages(messages);
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

/** Gemma's templates and others raise on a system turn; the only honest reading is to fold it into the user's. */
function isSystemRefusal(error: unknown, messages: readonly ChatMessage[]): boolean {
  if (!(error instanceof RuvLLMError) || typeof error.data['raised'] !== 'string') return false;
  const hasSystem = messages.some(({ role }) => role === 'system' || role === 'developer');
  return hasSystem && /system/i.test(error.data['raised']);
}
