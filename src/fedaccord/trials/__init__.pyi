from .calibration import Calibration as Calibration
from .calibration import calibrate as calibrate
from .profiles import PlayedProfile as PlayedProfile
from .setting import AfterRound as AfterRound
from .setting import Progress as Progress
from .setting import RoundScore as RoundScore
from .setting import build_course as build_course
from .trial import Trial as Trial
from .trial import train as train

__all__: list[str]
