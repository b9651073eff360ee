// All panels, in the order in which their tabs stand.

import './modules.ts';
import './kernels.ts';
import './changes.ts';
import './results.ts';
import './bookmarks.ts';
import './source.ts';
import './listing.ts';
import './kernelcode.ts';
import './compiling.ts';
import './timeline.ts';
import './cost.ts';
import './table.ts';
import './values.ts';
import './numbers.ts';
