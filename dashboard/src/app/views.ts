import type { ComponentType } from 'preact';
import type { Permissions } from '../api/types.ts';
import type { IconName } from '../components/icon.tsx';

/** One entry of the navigation. Its page is loaded on first use. */
export interface View {
  /** The first segment of the URL fragment: `#/chat`. */
  readonly id: string;
  readonly title: string;
  readonly icon: IconName;
  /** Position in the navigation, ascending from the top. */
  readonly order: number;
  /** Whether a key with these permissions sees the view. */
  readonly isOpenTo: (permissions: Permissions) => boolean;
  readonly load: () => Promise<{ default: ComponentType<ViewProps> }>;
}

export interface ViewProps {
  /** The fragment's segments after the view id: `#/audit/abc` is `['abc']`. */
  readonly path: readonly string[];
}

/** Every folder in `views/` with a `view.ts` is registered automatically. */
const viewModules = import.meta.glob<{ view: View }>('../views/*/view.ts', { eager: true });

export const VIEWS: readonly View[] = Object.values(viewModules)
  .map(({ view }) => view)
  .sort((a, b) => a.order - b.order);
