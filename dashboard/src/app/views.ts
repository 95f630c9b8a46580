import type { ComponentType } from 'preact';
import type { Allowances } from '../api/types.ts';
import type { IconName } from '../components/icon.tsx';

/** One entry of the navigation. Its page is loaded when it is opened for the first time. */
export interface View {
  /** In the address: `#/chat`. */
  readonly id: string;
  readonly title: string;
  readonly icon: IconName;
  /** Its place from the top. */
  readonly order: number;
  /** Whether a key that allows this sees it at all. */
  readonly isOpenTo: (allows: Allowances) => boolean;
  readonly load: () => Promise<{ default: ComponentType<ViewProps> }>;
}

export interface ViewProps {
  /** What is behind the view's name in the address: `#/audit/abc` is `['abc']`. */
  readonly path: readonly string[];
}

/** A folder in `views/` with a `view.ts` is a view: nothing else has to be told of it. */
const found = import.meta.glob<{ view: View }>('../views/*/view.ts', { eager: true });

export const VIEWS: readonly View[] = Object.values(found)
  .map(({ view }) => view)
  .sort((a, b) => a.order - b.order);
