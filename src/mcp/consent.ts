import type { McpTool } from './tool-list.ts';

/** `allow`: the tool is called; `ask`: a person is asked before each call; `deny`: models do not see the tool. */
export type Consent = 'allow' | 'ask' | 'deny';

export const CONSENTS = ['allow', 'ask', 'deny'] as const satisfies readonly Consent[];

/** The rules of one server. */
export interface ConsentRules {
  /** For tools without a rule of their own. Null: tools that say they only read are allowed, others ask. */
  readonly server: Consent | null;
  readonly tools: ReadonlyMap<string, Consent>;
}

export const DEFAULT_CONSENT: ConsentRules = { server: null, tools: new Map() };

export function consentFor({ server, tools }: ConsentRules, { name, isReadOnly }: McpTool): Consent {
  return tools.get(name) ?? server ?? (isReadOnly ? 'allow' : 'ask');
}
