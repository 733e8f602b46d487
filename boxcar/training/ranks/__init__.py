"""The processes that train together. A script says `from boxcar.training import ranks`."""

from boxcar.training.ranks.ranks import Ranks as Ranks
from boxcar.training.ranks.ranks import agree_any as agree_any
from boxcar.training.ranks.ranks import all_reduce_metrics as all_reduce_metrics
from boxcar.training.ranks.ranks import current as current
from boxcar.training.ranks.ranks import join as join
from boxcar.training.ranks.ranks import leave as leave
from boxcar.training.ranks.ranks import who as who
