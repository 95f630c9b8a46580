import type { View } from '../../app/views.ts';

export const view: View = {
  id: 'live',
  title: 'Live',
  icon: 'live',
  order: 2,
  isOpenTo: ({ operate }) => operate,
  load: () => import('./index.tsx'),
};
