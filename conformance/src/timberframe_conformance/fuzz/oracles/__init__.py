"""What must hold of every program. Each module adds oracles to `subject.ORACLES`; importing this package adds all."""

from timberframe_conformance.fuzz.oracles import devices as devices
from timberframe_conformance.fuzz.oracles import feeds as feeds
from timberframe_conformance.fuzz.oracles import fetches as fetches
from timberframe_conformance.fuzz.oracles import graphs as graphs
from timberframe_conformance.fuzz.oracles import repeats as repeats
from timberframe_conformance.fuzz.oracles import seams as seams
from timberframe_conformance.fuzz.oracles import slopes as slopes
from timberframe_conformance.fuzz.oracles import truth as truth
