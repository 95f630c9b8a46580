import type { ChatTemplate } from '../../chat/types.ts';
import type { ReasoningWish } from '../chat-options.ts';

/** Names of the switch in template families: Qwen, GLM and most; DeepSeek, Granite. */
const SWITCHES = ['enable_thinking', 'thinking'];
const LEVELS = 'reasoning_effort';

/** Levels that models were trained with; others map to the nearest. */
const KNOWN_LEVELS: Partial<Record<ReasoningWish, string>> = {
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
};

/** The template's variables for a wish; a template without a setting for it reasons as it always does. */
export function reasoningVariables(template: ChatTemplate, wish: ReasoningWish): Readonly<Record<string, unknown>> {
  if (wish === 'auto') return {};
  const name = SWITCHES.find((one) => template.reads(one));
  const switched = name === undefined ? {} : { [name]: wish !== 'none' };
  if (wish === 'none') return switched;
  const level = KNOWN_LEVELS[wish];
  if (level !== undefined && template.reads(LEVELS)) return { ...switched, [LEVELS]: level };
  return switched;
}
