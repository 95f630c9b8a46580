import type { ChatTemplate } from '../../chat/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
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

/** The template's variables for a wish; `unsupported` where it cannot be told and would not do it anyway. */
export function reasoningVariables(template: ChatTemplate, wish: ReasoningWish): Readonly<Record<string, unknown>> {
  if (wish === 'auto') return {};
  const name = SWITCHES.find((one) => template.reads(one));
  const switched = name === undefined ? {} : { [name]: wish !== 'none' };
  if (wish === 'none') return switched;
  const level = KNOWN_LEVELS[wish];
  if (level !== undefined && template.reads(LEVELS)) return { ...switched, [LEVELS]: level };
  // One that always thinks needs no switch to be on; a level it cannot be told.
  if (name !== undefined || (wish === 'on' && template.reasoning !== null)) return switched;
  throw new RuvLLMError('unsupported', `this model's chat template has no reasoning setting for "${wish}"`, {
    data: { option: 'reasoning', reasoning: wish },
  });
}
