/**
 * A text with a fixed skeleton, as plain JSON data: what a chat format asks for and a grammar enforces, without either knowing
 * the other.
 */
export type StructureNode =
  /** Exactly this text. */
  | { readonly kind: 'text'; readonly text: string }
  /** A JSON value that satisfies the schema; where `without` is given its text does not contain that. */
  | { readonly kind: 'json'; readonly schema: unknown; readonly without?: string }
  /** Any text that contains neither `until` nor `without`, then `until`. The lengths are in characters of the text before it. */
  | {
      readonly kind: 'raw';
      readonly until: string;
      readonly without?: string;
      readonly minLength?: number;
      readonly maxLength?: number;
    }
  | { readonly kind: 'sequence'; readonly items: readonly StructureNode[] }
  | { readonly kind: 'choice'; readonly items: readonly StructureNode[] }
  | {
      readonly kind: 'repeat';
      readonly item: StructureNode;
      /** Between two items. */
      readonly separator: string;
      readonly min: number;
      /** Null: no bound. */
      readonly max: number | null;
    }
  /** Any text. Once a trigger has been written its `node` binds; after that free text again, or nothing. */
  | {
      readonly kind: 'free';
      readonly branches: readonly { readonly trigger: string; readonly node: StructureNode }[];
      readonly endsAfterBranch: boolean;
    };
