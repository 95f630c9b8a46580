/** A text with a fixed skeleton, as plain JSON data: chat formats describe it and grammars enforce it independently. */
export type StructureNode =
  /** Exactly this text. */
  | { readonly kind: 'text'; readonly text: string }
  /** A JSON value that satisfies the schema and whose text does not contain `without`. */
  | { readonly kind: 'json'; readonly schema: unknown; readonly without?: string }
  /** Any text that contains neither `until` nor `without`, then `until`. Lengths are in characters, without `until`. */
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
  /** Any text. After a trigger its `node` applies; then free text again, or the end. */
  | {
      readonly kind: 'free';
      readonly branches: readonly { readonly trigger: string; readonly node: StructureNode }[];
      readonly endsAfterBranch: boolean;
    };
